/* Failures, moves and callbacks of tutti.hpp. */
#include <array>
#include <cstdio>
#include <string>
#include <tutti.hpp>

static int failed;

static void require(bool right, const char *what)
{
    if (!right) std::printf("wrong: %s\n", what);
    failed += !right;
}

template <typename call>
static void throws(tutti_status status, const char *part, call &&made)
{
    try {
        made();
        require(false, part);
    } catch (const tutti::error &error) {
        require(error.status() == status && std::string(error.what()).find(part) != std::string::npos, error.what());
    }
}

static tutti::trainer made(const tutti::network &network, tutti_tensor output)
{
    tutti_training training = TUTTI_OPTIONS(tutti_training);
    training.loss = TUTTI_MSE;
    training.batch = 4;
    return tutti::trainer(network, output, training);
}

int main()
{
    static_assert(!std::is_copy_constructible_v<tutti::network> && !std::is_copy_assignable_v<tutti::trainer>);
    static_assert(std::is_nothrow_move_constructible_v<tutti::trainer>);
    throws(TUTTI_NO_DEVICE, "999", [] { tutti::runtime runtime("999"); });
    throws(TUTTI_SHAPE, "one to eight", [] { tutti::shape({}); });

    tutti::runtime runtime;
    tutti::network network(runtime);
    const tutti_tensor y = tutti_dense(network, tutti_input(network, "x", tutti::shape({ 2 })), 1, nullptr);
    tutti::trainer first = made(network, y), trainer = std::move(first);
    throws(TUTTI_INVALID, "moved", [&] { tutti_learning_rate(first); });
    first = std::move(trainer);
    std::swap(first, trainer);
    throws(TUTTI_INVALID, "moved", [&] { first.get(); });

    const std::array<float, 16> points = { 1, 2, 3, 4, 5, 6, 7, 8, 8, 7, 6, 5, 4, 3, 2, 1 };
    const std::vector<float> targets(8, 1);
    const std::initializer_list<tutti::feed> feeds = { { "x", points }, { "targets", targets } };
    tutti_fitting fitting = TUTTI_OPTIONS(tutti_fitting);
    trainer.fit(feeds, 8, fitting);
    require(trainer.evaluate(feeds, 8).samples == 8, "evaluated");
    require(trainer.step({ { "x", points }, { "targets", targets } }, 4).samples == 4, "a step");
    float outputs[8];
    trainer.infer({ { "x", points } }, 8, y, tutti::span<float>(outputs, 8));
    throws(TUTTI_INVALID, "size of the output", [&] {
        trainer.infer({ { "x", std::array<float, 8>() } }, 4, y, tutti::span<float>(outputs, 8));
    });
    throws(TUTTI_INVALID, "multiple", [&] { trainer.fit(feeds, 7, fitting); });
    throws(TUTTI_CANCELLED, "", [&] { trainer.fit(feeds, 8, fitting, [](const tutti_progress &) { return false; }); });
    throws(TUTTI_FILE, "absent", [&] { tutti::check(tutti_load_weights(trainer, "absent/weights.safetensors")); });
    int thrown = 0;
    try {
        trainer.fit(feeds, 8, fitting, [](const tutti_progress &) -> bool { throw 42; });
    } catch (int number) {
        thrown = number;
    }
    require(thrown == 42, "what a callback threw");
    trainer.fit(feeds, 8, fitting); /* it is still usable */

    tutti::network broken(runtime);
    const tutti_tensor bad = tutti_reshape(broken, tutti_input(broken, "x", tutti::shape({ 2 })), tutti::shape({ 5 }));
    throws(TUTTI_SHAPE, "", [&] { made(broken, bad); });
    std::printf("%d failed\n", failed);
    return failed != 0;
}
