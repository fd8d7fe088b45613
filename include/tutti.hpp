/* The library for C++17. Objects own what C frees by hand, and pass as arguments to every function of the headers:
 *
 *   tutti::runtime runtime;
 *   tutti::network network(runtime);
 *   tutti_tensor x = tutti_input(network, "x", tutti::shape({ 28, 28 }));
 *   tutti::trainer trainer(network, tutti_dense(network, x, 10, nullptr), training);
 *   tutti::check(tutti_save_weights(trainer, "weights.safetensors"));
 *
 * Failures are thrown as tutti::error: by the objects, and by tutti::check(). The first failure of a function that adds
 * a layer stays in the network, and the trainer's constructor throws it. Free objects in the reverse order of their
 * making, as the scopes of C++ do. */
#ifndef TUTTI_HPP
#define TUTTI_HPP

#include <tutti.h>
#include <tutti_inspect.h>
#include <tutti_sequences.h>
#include <tutti_steps.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tutti
{

class error : public std::runtime_error
{
public:
    /* Without a message: that of the thread's last failure. */
    explicit error(tutti_status status, const char *message = tutti_message(nullptr))
        : std::runtime_error(message)
        , status_(status)
    {
    }
    tutti_status status() const noexcept { return status_; }

private:
    tutti_status status_;
};

inline void check(tutti_status status)
{
    if (status != TUTTI_OK) throw error(status);
}

/* One to eight sizes. */
inline tutti_shape shape(std::initializer_list<std::int64_t> sizes)
{
    tutti_shape made = {};
    if (sizes.size() < 1 || sizes.size() > TUTTI_MAX_RANK) throw error(TUTTI_SHAPE, "a shape has one to eight sizes");
    made.rank = static_cast<int>(sizes.size());
    std::copy(sizes.begin(), sizes.end(), made.sizes);
    return made;
}

/* A C object that is freed with its owner; it can be moved, not copied. One that was moved from has none: using it
 * throws. */
template <typename type, void (*release)(type *)>
class owner
{
public:
    /* Takes what a function returned; NULL: throws that function's failure. */
    explicit owner(type *handle)
        : handle_(handle)
    {
        if (!handle) throw error(tutti_last_status());
    }
    owner(owner &&other) noexcept
        : handle_(std::exchange(other.handle_, nullptr))
    {
    }
    owner &operator=(owner &&other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~owner()
    {
        if (handle_) release(handle_);
    }
    type *get() const
    {
        if (!handle_) throw error(TUTTI_INVALID, "this object was moved to another");
        return handle_;
    }
    operator type *() const { return get(); }

private:
    type *handle_;
};

/* The type of elements. */
template <typename type>
constexpr tutti_dtype dtype_of()
{
    if constexpr (std::is_same_v<type, float>)
        return TUTTI_DTYPE_F32;
    else if constexpr (std::is_same_v<type, std::int32_t>)
        return TUTTI_DTYPE_I32;
    else if constexpr (std::is_same_v<type, std::int64_t>)
        return TUTTI_DTYPE_I64;
    else if constexpr (std::is_same_v<type, bool>)
        return TUTTI_DTYPE_BOOL;
    else {
        static_assert(std::is_same_v<type, std::uint8_t>, "arrays are of float, int32_t, int64_t, uint8_t or bool");
        return TUTTI_DTYPE_U8;
    }
}

/* Elements in a row, of a vector, an array, a std::span or a pointer and their number; they stay the caller's. */
template <typename type>
class span
{
public:
    span(type *data, std::size_t size)
        : data_(data)
        , size_(size)
    {
    }
    template <typename container, typename = decltype(std::declval<container &>().data())>
    span(container &&from)
        : data_(from.data())
        , size_(from.size())
    {
    }
    type *data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }

private:
    type *data_;
    std::size_t size_;
};

/* An array for an input, or for "targets". steps: the length of its sequences, as tutti_feed.length. */
struct feed : tutti_feed {
    std::size_t size;
    template <typename container,
        typename element =
            std::remove_const_t<std::remove_pointer_t<decltype(std::declval<const container &>().data())>>>
    feed(const char *input, const container &values, std::int64_t steps = 0)
        : tutti_feed { input, dtype_of<element>(), values.data(), steps }
        , size(values.size())
    {
    }
};

using runtime_owner = owner<tutti_runtime, tutti_close>;
class runtime : public runtime_owner
{
public:
    explicit runtime(const char *devices = nullptr)
        : runtime_owner(open(devices))
    {
    }
    explicit runtime(const tutti_runtime_options &options)
        : runtime_owner(tutti_open(&options))
    {
    }

private:
    static tutti_runtime *open(const char *devices)
    {
        tutti_runtime_options options = TUTTI_OPTIONS(tutti_runtime_options);
        options.devices = devices;
        return tutti_open(&options);
    }
};

using network_owner = owner<tutti_network, tutti_network_free>;
class network : public network_owner
{
public:
    explicit network(const runtime &runtime)
        : network_owner(tutti_network_new(runtime))
    {
    }
};

/* An output, as the trainer has it: [samples][shape of a sample]. Closed at the end of its scope, before its trainer is
 * freed. */
class output_view
{
public:
    output_view(tutti_trainer *trainer, tutti_tensor output)
        : trainer_(trainer)
    {
        check(tutti_view_output(trainer, output, &view_));
    }
    output_view(output_view &&other) noexcept
        : trainer_(std::exchange(other.trainer_, nullptr))
        , view_(other.view_)
    {
    }
    output_view &operator=(output_view &&other) noexcept
    {
        std::swap(trainer_, other.trainer_);
        std::swap(view_, other.view_);
        return *this;
    }
    ~output_view()
    {
        if (trainer_) tutti_view_close(trainer_, &view_, false);
    }
    const float *data() const
    {
        if (!trainer_) throw error(TUTTI_INVALID, "this view was moved to another");
        return view_.values;
    }
    std::size_t size() const noexcept { return static_cast<std::size_t>(view_.count); }
    const tutti_shape &shape() const noexcept { return view_.shape; }
    const float *begin() const { return data(); }
    const float *end() const { return data() + size(); }
    float operator[](std::size_t index) const { return data()[index]; }

private:
    tutti_trainer *trainer_;
    tutti_view view_ = TUTTI_OPTIONS(tutti_view);
};

using trainer_owner = owner<tutti_trainer, tutti_trainer_free>;
class trainer : public trainer_owner
{
public:
    trainer(const network &network, tutti_tensor output, const tutti_training &training)
        : trainer_owner(tutti_compile(network, output, &training))
        , network_(network)
        , output_(output)
        , loss_(training.loss)
        , sequence_(training.sequence)
    {
    }
    trainer(trainer &&) noexcept = default;
    trainer &operator=(trainer &&other) noexcept
    {
        trainer_owner::operator=(std::move(other));
        std::swap(network_, other.network_);
        std::swap(output_, other.output_);
        std::swap(loss_, other.loss_);
        std::swap(sequence_, other.sequence_);
        return *this;
    }
    void fit(std::initializer_list<feed> feeds, std::int64_t samples, const tutti_fitting &fitting)
    {
        const auto list = checked(feeds, samples);
        check(tutti_fit(*this, list.data(), static_cast<int>(list.size()), samples, &fitting));
    }
    /* progress(const tutti_progress &) returns whether to go on. What it throws ends the training and is thrown here.
     */
    template <typename callback>
    void fit(std::initializer_list<feed> feeds, std::int64_t samples, tutti_fitting fitting, callback progress)
    {
        struct state {
            callback &progress;
            std::exception_ptr thrown;
        } state { progress, nullptr };
        fitting.user = &state;
        fitting.progress = [](void *user, const tutti_progress *now) {
            auto *to = static_cast<struct state *>(user);
            try {
                return to->progress(*now) ? 0 : 1;
            } catch (...) { /* no exception crosses the functions of C */
                to->thrown = std::current_exception();
                return 1;
            }
        };
        const auto list = checked(feeds, samples);
        const tutti_status status = tutti_fit(*this, list.data(), static_cast<int>(list.size()), samples, &fitting);
        if (state.thrown) std::rethrow_exception(state.thrown);
        check(status);
    }
    tutti_metrics step(std::initializer_list<feed> feeds, std::int64_t samples)
    {
        tutti_metrics metrics = {};
        const auto list = checked(feeds, samples);
        check(tutti_train_step(*this, list.data(), static_cast<int>(list.size()), samples, &metrics));
        return metrics;
    }
    tutti_metrics evaluate(std::initializer_list<feed> feeds, std::int64_t samples)
    {
        tutti_metrics metrics = {};
        const auto list = checked(feeds, samples);
        check(tutti_evaluate(*this, list.data(), static_cast<int>(list.size()), samples, &metrics));
        return metrics;
    }
    /* Computes an output that was passed to the constructor, for all samples: `values` has room for all its elements.
     */
    void infer(std::initializer_list<feed> feeds, std::int64_t samples, tutti_tensor output, span<float> values)
    {
        const auto list = checked(feeds, samples);
        const tutti_fetch fetch = { output, TUTTI_DTYPE_F32, values.data() };
        require("the array for an output", values.size(), samples, elements_of(output, length_of(feeds)));
        check(tutti_infer(*this, list.data(), static_cast<int>(list.size()), samples, &fetch, 1));
    }

    /* Computes an output and shows it, without a copy where tutti_view_output() needs none. The samples are computed at
     * once; close the view, by the end of its scope, before the trainer computes something else. */
    output_view view(std::initializer_list<feed> feeds, std::int64_t samples, tutti_tensor output)
    {
        const auto list = checked(feeds, samples);
        check(tutti_infer_keep(*this, list.data(), static_cast<int>(list.size()), samples, &output, 1));
        return output_view(*this, output);
    }
    /* State that tutti_training.carries keeps on the device: all samples of the pair's input. */
    void set_carried(tutti_tensor input, span<const float> values, std::int64_t samples)
    {
        require("the array for a state", values.size(), samples, elements_of(input, 0));
        check(tutti_set_carried(*this, input, values.data(), samples));
    }
    void get_carried(tutti_tensor input, span<float> values, std::int64_t samples)
    {
        require("the array for a state", values.size(), samples, elements_of(input, 0));
        check(tutti_get_carried(*this, input, values.data(), samples));
    }
    void reset_carried() { check(tutti_reset_carried(*this)); }

private:
    static void require(const std::string &what, std::size_t size, std::int64_t samples, std::uint64_t elements)
    {
        const auto count = static_cast<std::uint64_t>(samples);
        if (samples < 0) throw error(TUTTI_INVALID, "the number of samples is negative");
        if (samples == 0 || (size % count == 0 && size / count == elements)) return;
        throw error(TUTTI_INVALID,
            (what + " has " + std::to_string(size) + " elements: " + std::to_string(samples) + " samples of " +
                std::to_string(elements) + " are needed")
                .c_str());
    }
    /* Elements of a sample. */
    std::uint64_t elements_of(tutti_tensor tensor, std::int64_t length) const
    {
        tutti_shape shape = {};
        std::uint64_t elements = 1;
        check(tutti_shape_of(network_, tensor, &shape));
        for (int i = 0; i < shape.rank; i++)
            elements *= static_cast<std::uint64_t>(shape.sizes[i] == TUTTI_SEQUENCE ? length : shape.sizes[i]);
        return elements;
    }
    std::int64_t length_of(std::initializer_list<feed> feeds) const
    {
        for (const feed &one : feeds)
            if (one.length) return one.length;
        return sequence_;
    }
    /* Checks the array at a position among the feeds. What has no such input is left to the library to refuse. */
    void require_input(const feed &one, int position, std::int64_t samples, std::int64_t length) const
    {
        tutti_tensor input = {};
        int at = one.name ? 0 : position;
        if (length < 0) return;
        for (; tutti_network_input(network_, at, &input) == TUTTI_OK; at++) {
            tutti_tensor_info info = TUTTI_OPTIONS(tutti_tensor_info);
            check(tutti_network_tensor(network_, input, &info));
            if (!one.name || std::strcmp(one.name, info.name) == 0)
                return require(
                    std::string("the array for \"") + info.name + '"', one.size, samples, elements_of(input, length));
        }
        if (loss_ == TUTTI_LOSS_NONE || (one.name ? std::strcmp(one.name, "targets") != 0 : at != position)) return;
        const std::uint64_t elements = loss_ == TUTTI_CROSS_ENTROPY ? 1 : elements_of(output_, length);
        require("the array for \"targets\"", one.size, samples, elements);
    }
    std::vector<tutti_feed> checked(std::initializer_list<feed> feeds, std::int64_t samples) const
    {
        int position = 0;
        for (const feed &one : feeds) require_input(one, position++, samples, length_of(feeds));
        return { feeds.begin(), feeds.end() };
    }

    tutti_network *network_; /* of the constructor; it lives longer */
    tutti_tensor output_;
    tutti_loss loss_;
    std::int64_t sequence_;
};

} // namespace tutti
#endif
