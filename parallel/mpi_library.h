/* MPI. Open MPI is loaded by the first process that was started by mpirun, other ones are linked: what an MPI
 * library calls MPI_COMM_WORLD, here the address of an object, differs between them. */
#ifndef PARALLEL_MPI_LIBRARY_H
#define PARALLEL_MPI_LIBRARY_H

#include "base/loaded.h"

#include <mpi.h>

#ifdef TUTTI_LOADS_MPI
#define MPI_FUNCTIONS(X)       \
    X(MPI_Comm_dup)            \
    X(MPI_Comm_free)           \
    X(MPI_Comm_rank)           \
    X(MPI_Comm_set_errhandler) \
    X(MPI_Comm_size)           \
    X(MPI_Error_string)        \
    X(MPI_Finalize)            \
    X(MPI_Finalized)           \
    X(MPI_Iallgather)          \
    X(MPI_Iallreduce)          \
    X(MPI_Ibarrier)            \
    X(MPI_Ibcast)              \
    X(MPI_Init_thread)         \
    X(MPI_Initialized)         \
    X(MPI_Iprobe)              \
    X(MPI_Isend)               \
    X(MPI_Op_create)           \
    X(MPI_Op_free)             \
    X(MPI_Query_thread)        \
    X(MPI_Recv)                \
    X(MPI_Request_free)        \
    X(MPI_Test)                \
    X(MPI_Testall)             \
    X(ompi_mpi_byte)           \
    X(ompi_mpi_comm_null)      \
    X(ompi_mpi_comm_world)     \
    X(ompi_mpi_errors_return)  \
    X(ompi_mpi_float)          \
    X(ompi_mpi_op_null)        \
    X(ompi_mpi_op_sum)         \
    X(ompi_mpi_uint16_t)       \
    X(ompi_request_null)
LOADED_TABLE(mpi, MPI_FUNCTIONS)
#define MPI_Comm_dup mpi_functions.MPI_Comm_dup
#define MPI_Comm_free mpi_functions.MPI_Comm_free
#define MPI_Comm_rank mpi_functions.MPI_Comm_rank
#define MPI_Comm_set_errhandler mpi_functions.MPI_Comm_set_errhandler
#define MPI_Comm_size mpi_functions.MPI_Comm_size
#define MPI_Error_string mpi_functions.MPI_Error_string
#define MPI_Finalize mpi_functions.MPI_Finalize
#define MPI_Finalized mpi_functions.MPI_Finalized
#define MPI_Iallgather mpi_functions.MPI_Iallgather
#define MPI_Iallreduce mpi_functions.MPI_Iallreduce
#define MPI_Ibarrier mpi_functions.MPI_Ibarrier
#define MPI_Ibcast mpi_functions.MPI_Ibcast
#define MPI_Init_thread mpi_functions.MPI_Init_thread
#define MPI_Initialized mpi_functions.MPI_Initialized
#define MPI_Iprobe mpi_functions.MPI_Iprobe
#define MPI_Isend mpi_functions.MPI_Isend
#define MPI_Op_create mpi_functions.MPI_Op_create
#define MPI_Op_free mpi_functions.MPI_Op_free
#define MPI_Query_thread mpi_functions.MPI_Query_thread
#define MPI_Recv mpi_functions.MPI_Recv
#define MPI_Request_free mpi_functions.MPI_Request_free
#define MPI_Test mpi_functions.MPI_Test
#define MPI_Testall mpi_functions.MPI_Testall
#define ompi_mpi_byte (*mpi_functions.ompi_mpi_byte)
#define ompi_mpi_comm_null (*mpi_functions.ompi_mpi_comm_null)
#define ompi_mpi_comm_world (*mpi_functions.ompi_mpi_comm_world)
#define ompi_mpi_errors_return (*mpi_functions.ompi_mpi_errors_return)
#define ompi_mpi_float (*mpi_functions.ompi_mpi_float)
#define ompi_mpi_op_null (*mpi_functions.ompi_mpi_op_null)
#define ompi_mpi_op_sum (*mpi_functions.ompi_mpi_op_sum)
#define ompi_mpi_uint16_t (*mpi_functions.ompi_mpi_uint16_t)
#define ompi_request_null (*mpi_functions.ompi_request_null)

static struct loaded_library mpi_library = { .file = "libmpi.so.40",
    .package = "libopenmpi3",
    .purpose = "training by several processes",
    .is_global = true,
    LOADED_ENTRIES(mpi) };
#else
static struct loaded_library mpi_library; /* linked */
#endif

#endif
