/* Three clouds of points are told apart, by tutti.hpp: trained on vectors of the caller, saved, predicted. */
#include <cstdio>
#include <random>
#include <tutti.hpp>
#include <vector>

constexpr int samples = 600, classes = 3;

static void make_blobs(std::vector<float> &points, std::vector<std::int32_t> &labels)
{
    std::mt19937 random(1);
    std::uniform_real_distribution<float> around(-0.6f, 0.6f);
    const float centres[classes][2] = { { -1, 0 }, { 1, 0 }, { 0, 1.5f } };
    for (int i = 0; i < samples; i++) {
        labels.push_back(i % classes);
        for (float centre : centres[i % classes]) points.push_back(centre + around(random));
    }
}

int main()
try {
    std::vector<float> points, logits(samples * classes);
    std::vector<std::int32_t> labels;
    make_blobs(points, labels);

    tutti::runtime runtime; /* all GPUs, or the CPU */
    tutti::network network(runtime);
    tutti_tensor x = tutti_input(network, "point", tutti::shape({ 2 }));
    x = tutti_tanh(network, tutti_dense(network, x, 16, nullptr));
    const tutti_tensor output = tutti_dense(network, x, classes, nullptr);

    tutti_training training = TUTTI_OPTIONS(tutti_training);
    training.loss = TUTTI_CROSS_ENTROPY;
    training.optimizer = TUTTI_ADAM;
    training.learning_rate = 0.02f;
    training.batch = 50;
    tutti::trainer trainer(network, output, training);

    tutti_fitting fitting = TUTTI_OPTIONS(tutti_fitting);
    fitting.epochs = 10;
    trainer.fit({ { "point", points }, { "targets", labels } }, samples, fitting, [](const tutti_progress &now) {
        if (now.end_of_epoch) std::printf("epoch %d: loss %.4f\n", static_cast<int>(now.epoch), now.train.loss);
        return true; /* goes on */
    });
    tutti::check(tutti_save_weights(trainer, "blobs.safetensors"));

    int correct = 0;
    trainer.infer({ { "point", points } }, samples, output, logits);
    for (int i = 0; i < samples; i++) {
        int best = 0;
        for (int c = 1; c < classes; c++)
            if (logits[i * classes + c] > logits[i * classes + best]) best = c;
        correct += best == labels[i];
    }
    std::printf("%d of %d points are classified correctly\n", correct, samples);
    return correct > samples * 9 / 10 ? 0 : 1;
} catch (const tutti::error &error) {
    std::fprintf(stderr, "blobs: %s (%s)\n", error.what(), tutti_status_name(error.status()));
    return 1;
}
