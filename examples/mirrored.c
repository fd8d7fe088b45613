/* One dense unit, mean squared error, SGD with learning rate 0.2, on all OpenCL devices of the machine. */
#include <stdio.h>
#include <tutti.h>

int main(void)
{
    float ones[100];
    for (int i = 0; i < 100; i++) ones[i] = 1;

    tutti_runtime *runtime = tutti_open(NULL);
    if (!runtime) {
        fprintf(stderr, "mirrored: %s\n", tutti_message(NULL));
        return 1;
    }
    tutti_network *network = tutti_network_new(runtime);
    tutti_tensor y = tutti_dense(network, tutti_input(network, "x", TUTTI_SHAPE(1)), 1, NULL);
    tutti_training training = { sizeof(training), TUTTI_MSE, TUTTI_SGD, 0.2f };
    tutti_fitting fitting = { sizeof(fitting), 10 /* epochs */ };
    tutti_metrics metrics;
    tutti_feed feeds[] = { { "x", TUTTI_DTYPE_F32, ones }, { "targets", TUTTI_DTYPE_F32, ones } };
    tutti_trainer *trainer = tutti_compile(network, y, &training);
    bool good = trainer && tutti_fit(trainer, feeds, 2, 100, &fitting) == TUTTI_OK &&
        tutti_evaluate(trainer, feeds, 2, 100, &metrics) == TUTTI_OK;
    if (good)
        printf("loss %g\n", metrics.loss);
    else
        fprintf(stderr, "mirrored: %s\n", tutti_message(runtime));

    tutti_trainer_free(trainer);
    tutti_network_free(network);
    tutti_close(runtime);
    return good ? 0 : 1;
}
