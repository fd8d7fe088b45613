/* What a kernel's text makes of a list of arguments (arguments/): its parameters, each but the first after a comma,
 * and their names, for the call of a function with the same parameters. runtime/arguments.h makes the host's
 * arguments of the same list. */
#define PARAMETER_FIRST(type, name) type name
#define PARAMETER_BUFFER(type, name) , type name
#define PARAMETER_LOCAL(type, name) , type name
#define PARAMETER_SCRATCH(type, name) , type name
#define PARAMETER_INT(name) , int name
#define PARAMETER_UINT(name) , uint name
#define PARAMETER_LONG(name) , long name
#define PARAMETER_INDEX(name) , INDEX name
#define PARAMETER_FLOAT(name) , float name
#define NAME_FIRST(type, name) name
#define NAME_BUFFER(type, name) , name
#define NAME_LOCAL(type, name) , name
#define NAME_SCRATCH(type, name) , TASK_SCRATCH(name, name##_floats)
#define NAME_INT(name) , name
#define NAME_UINT(name) , name
#define NAME_LONG(name) , name
#define NAME_INDEX(name) , name
#define NAME_FLOAT(name) , name
/* A buffer that the kernel has where ADD is 1. */
#if ADD
#define PARAMETER_ADD PARAMETER_BUFFER
#define NAME_ADD NAME_BUFFER
#else
#define PARAMETER_ADD(type, name)
#define NAME_ADD(type, name)
#endif
