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

/* Arrays of classes, of bytes, of sequences, whose length a feed or the options say. */
static void check_sizes(const tutti::runtime &runtime)
{
    tutti::network network(runtime);
    const std::int64_t steps[] = { TUTTI_SEQUENCE, 3 };
    const tutti_tensor x = tutti_input_typed(network, "x", TUTTI_DTYPE_U8, steps, 2);
    const tutti_tensor floats = tutti_cast(network, x, TUTTI_DTYPE_F32);
    const tutti_tensor means = tutti_op(network, "reduce_mean", &floats, 1, "axes=0 keepdims=0");
    const tutti_tensor logits = tutti_dense(network, means, 3, nullptr);
    tutti_training training = TUTTI_OPTIONS(tutti_training);
    training.batch = 2;
    training.sequence = 5;
    training.outputs = &floats;
    training.output_count = 1;
    tutti::trainer trainer(network, logits, training);
    const std::vector<std::uint8_t> longest(2 * 5 * 3, 1), shorter(2 * 4 * 3, 1);
    const std::array<std::int64_t, 2> classes = { 0, 2 };
    std::vector<float> outputs(2 * 4 * 3);
    trainer.step({ { "x", longest }, { "targets", classes } }, 2);
    trainer.step({ { "x", shorter, 4 }, { "targets", classes } }, 2);
    trainer.infer({ { "x", shorter, 4 } }, 2, floats, outputs);
    throws(TUTTI_INVALID, "\"x\" has 24 elements: 2 samples of 15", [&] {
        trainer.step({ { "x", shorter }, { "targets", classes } }, 2);
    });
    throws(TUTTI_INVALID, "an output has 24 elements: 2 samples of 15", [&] {
        trainer.infer({ { "x", longest } }, 2, floats, outputs);
    });
    throws(TUTTI_INVALID, "\"targets\" has 2 elements: 1 samples of 1", [&] {
        trainer.step({ { "x", shorter, 8 }, { "targets", classes } }, 1);
    });
    tutti::trainer moved = std::move(trainer);
    throws(TUTTI_INVALID, "2 samples of 15", [&] { moved.evaluate({ { "x", shorter }, { "targets", classes } }, 2); });
}

/* Outputs that are viewed, state that is carried, and a trainer that reads another one's parameters. */
static void check_inference(const tutti::runtime &runtime)
{
    tutti::network network(runtime);
    const tutti_tensor x = tutti_input(network, "x", tutti::shape({ 2 })),
                       h = tutti_input(network, "h", tutti::shape({ 2 }));
    const tutti_tensor y =
        tutti_add(network, tutti_mul(network, x, tutti_parameter(network, "w", tutti::shape({ 2 }), nullptr)), h);
    tutti::trainer owner = made(network, y);
    const float ones[] = { 1, 1 };
    tutti::check(tutti_set_parameter(owner, "w", ones, 2));
    const tutti_carry carry = { y, h };
    tutti_training reading = TUTTI_OPTIONS(tutti_training);
    reading.loss = TUTTI_LOSS_NONE;
    reading.parameters_of = owner;
    reading.carries = &carry;
    reading.carry_count = 1;
    tutti::trainer reader(network, y, reading);
    const std::array<float, 4> steps = { 1, 2, 3, 4 };
    std::array<float, 4> state = {};
    for (int step = 1; step <= 3; step++) {
        tutti::output_view view = reader.view({ { "x", steps } }, 2, y);
        require(view.size() == 4 && view.shape().rank == 2 && view.shape().sizes[0] == 2, "the shape of a view");
        for (std::size_t i = 0; i < 4; i++) require(view[i] == static_cast<float>(step) * steps[i], "a state");
        throws(TUTTI_INVALID, "view", [&] { reader.infer({ { "x", steps } }, 2, y, state); });
        tutti::output_view other = std::move(view);
        throws(TUTTI_INVALID, "moved", [&] { view.data(); });
        float sum = 0;
        for (const float value : other) sum += value;
        require(sum == static_cast<float>(10 * step), "all of a view");
    }
    reader.get_carried(h, state, 2);
    require(state[3] == 12, "a state that was read");
    reader.set_carried(h, steps, 2);
    reader.infer({ { "x", steps } }, 2, y, state);
    require(state[3] == 8, "a state that was set");
    throws(TUTTI_INVALID, "4 elements: 1 samples of 2", [&] { reader.set_carried(h, steps, 1); });
    throws(TUTTI_INVALID, "4 elements: 3 samples of 2", [&] { reader.get_carried(h, state, 3); });
    reader.reset_carried();
    reader.infer({ { "x", tutti::span<const float>(steps.data(), 2) } }, 1, y, tutti::span<float>(state.data(), 2));
    require(state[1] == 2, "a state that was reset");
    owner.step({ { "x", steps }, { "h", steps }, { "targets", steps } }, 2);
    throws(TUTTI_INVALID, "parameters of another", [&] { reader.step({ { "x", steps } }, 2); });
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
    require(
        trainer.step({ { "x", tutti::span<const float>(points.data(), 8) },
                         { "targets", tutti::span<const float>(targets.data(), 4) } },
                   4)
                .samples == 4,
        "a step");
    throws(TUTTI_INVALID, "\"x\" has 16 elements: 4 samples of 2 are needed", [&] { trainer.step(feeds, 4); });
    float outputs[8];
    trainer.infer({ { "x", points } }, 8, y, tutti::span<float>(outputs, 8));
    throws(TUTTI_INVALID, "an output has 8 elements: 4 samples of 1 are needed", [&] {
        trainer.infer({ { "x", std::array<float, 8>() } }, 4, y, tutti::span<float>(outputs, 8));
    });
    throws(TUTTI_INVALID, "\"x\" has 16 elements: 7 samples of 2 are needed", [&] { trainer.fit(feeds, 7, fitting); });
    throws(TUTTI_INVALID, "\"x\" has 8 elements: 8 samples of 2 are needed", [&] {
        trainer.step({ { "targets", targets }, { "x", std::array<float, 8>() } }, 8);
    });
    throws(TUTTI_INVALID, "\"targets\" has 8 elements: 4 samples of 1 are needed", [&] {
        trainer.evaluate({ { "x", std::array<float, 8>() }, { "targets", targets } }, 4);
    });
    throws(TUTTI_INVALID, "\"x\" has 8 elements", [&] {
        trainer.evaluate({ { nullptr, targets }, { nullptr, targets } }, 8);
    });
    throws(TUTTI_INVALID, "\"targets\" has 16", [&] {
        trainer.evaluate({ { nullptr, points }, { nullptr, points } }, 8);
    });
    throws(TUTTI_INVALID, "negative", [&] { trainer.step(feeds, -1); });
    throws(TUTTI_INVALID, "\"z\"", [&] { trainer.step({ { "z", points } }, 8); });
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

    check_sizes(runtime);
    check_inference(runtime);
    tutti::network broken(runtime);
    const tutti_tensor bad = tutti_reshape(broken, tutti_input(broken, "x", tutti::shape({ 2 })), tutti::shape({ 5 }));
    throws(TUTTI_SHAPE, "", [&] { made(broken, bad); });
    std::printf("%d failed\n", failed);
    return failed != 0;
}
