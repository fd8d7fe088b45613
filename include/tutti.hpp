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

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <stdexcept>
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

/* An array for an input, or for "targets". */
struct feed : tutti_feed {
    std::size_t size;
    template <typename container,
        typename element =
            std::remove_const_t<std::remove_pointer_t<decltype(std::declval<const container &>().data())>>>
    feed(const char *input, const container &values)
        : tutti_feed { input, dtype_of<element>(), values.data(), 0 }
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

using trainer_owner = owner<tutti_trainer, tutti_trainer_free>;
class trainer : public trainer_owner
{
public:
    trainer(const network &network, tutti_tensor output, const tutti_training &training)
        : trainer_owner(tutti_compile(network, output, &training))
        , network_(network)
    {
    }
    trainer(trainer &&) noexcept = default;
    trainer &operator=(trainer &&other) noexcept
    {
        trainer_owner::operator=(std::move(other));
        std::swap(network_, other.network_);
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
        require_room(values.size(), samples, output);
        check(tutti_infer(*this, list.data(), static_cast<int>(list.size()), samples, &fetch, 1));
    }

private:
    static void require_multiple(std::size_t size, std::int64_t samples)
    {
        if (samples < 0 || (samples > 0 && (size == 0 || size % static_cast<std::uint64_t>(samples))))
            throw error(TUTTI_INVALID, "the number of an array's elements is not a multiple of that of samples");
    }
    void require_room(std::size_t size, std::int64_t samples, tutti_tensor output) const
    {
        tutti_shape shape = {};
        std::uint64_t elements = 1;
        require_multiple(size, samples);
        check(tutti_shape_of(network_, output, &shape));
        for (int i = 0; i < shape.rank; i++) {
            if (shape.sizes[i] == TUTTI_SEQUENCE) return; /* the length is that of the feeds */
            elements *= static_cast<std::uint64_t>(shape.sizes[i]);
        }
        if (samples > 0 && size / static_cast<std::uint64_t>(samples) != elements)
            throw error(TUTTI_INVALID, "the array for an output has not the size of the output for all samples");
    }
    static std::vector<tutti_feed> checked(std::initializer_list<feed> feeds, std::int64_t samples)
    {
        for (const feed &one : feeds) require_multiple(one.size, samples);
        return { feeds.begin(), feeds.end() };
    }

    tutti_network *network_; /* of the constructor; it lives longer */
};

} // namespace tutti
#endif
