/// BatchSource gives fit() its batches, epoch after epoch. RangeSource makes a source of a LibTorch
/// data loader or of any range of batches.
///
/// One thread at a time reads a source. This file does not know LibTorch's loaders: a loader is any
/// object that has begin() and end(), or that points at one, and a batch is any object that has
/// `data` and `target`.
#pragma once

#include <array>
#include <concepts>
#include <iterator>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/module/batch.h"

namespace stagecraft {

/// LabeledBatch holds the batch of one step.
struct LabeledBatch {
  Batch inputs, labels;
};

/// BatchOf converts a batch type of yours to inputs and labels: specialize it with `static
/// LabeledBatch make(const T&)`.
template <class T>
struct BatchOf {};

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// Begins an epoch. Errors, also of next(): those that the loader throws.
  virtual void begin_epoch() = 0;
  /// Returns the next batch, or nothing at the end of the epoch.
  [[nodiscard]] virtual std::optional<LabeledBatch> next() = 0;
};

/// Returns one batch made of single samples: stacks each tensor along a new first dimension.
/// Errors: UsageArgument if there are no samples, or if a sample has another number of tensors than
///         the first one.
[[nodiscard]] LabeledBatch stacked(const std::vector<LabeledBatch>& samples);

namespace internal {

template <class T>
concept BatchByUser = requires(const T& batch) {
  { BatchOf<T>::make(batch) } -> std::convertible_to<LabeledBatch>;
};

template <class T>
concept IsTensor = std::convertible_to<const T&, at::Tensor>;

template <class T>
concept Iterable = requires(T& range) {
  std::begin(range);
  std::end(range);
};

/// IsLoader holds for what RangeSource reads, and neither for one batch nor for one tensor.
template <class T>
concept IsLoader = !std::convertible_to<const std::remove_cvref_t<T>&, Batch> &&
                   !std::convertible_to<const std::remove_cvref_t<T>&, BatchTensor> &&
                   (Iterable<std::remove_reference_t<T>> || requires(T & pointer) { *pointer; });

template <class T>
concept TupleOfTensors = requires {
  std::tuple_size<T>::value;
};

template <class T>
inline constexpr bool kNoBatch = false;

/// Appends the tensors of `side` to the list: of a tensor, or of ranges and tuples nested in any
/// way.
template <class T>
void append_tensors(Batch& batch, const T& side) {
  if constexpr (std::convertible_to<const T&, BatchTensor>) {
    batch.push_back(side);
  } else if constexpr (Iterable<const T>) {
    for (const auto& one : side) {
      append_tensors(batch, one);
    }
  } else if constexpr (TupleOfTensors<T>) {
    std::apply([&](const auto&... one) { (append_tensors(batch, one), ...); }, side);
  } else {
    static_assert(kNoBatch<T>,
                  "inputs and labels are tensors, or ranges, pairs and tuples of tensors; for a "
                  "type of yours specialize stagecraft::BatchOf");
  }
}

template <class T>
[[nodiscard]] Batch side_of(const T& side) {
  Batch batch;
  append_tensors(batch, side);
  return batch;
}

template <class T>
[[nodiscard]] LabeledBatch batch_of(const T& given) {
  if constexpr (BatchByUser<T>) {
    return BatchOf<T>::make(given);
  } else if constexpr (std::same_as<T, Batch>) {  // inputs alone
    return {given, {}};
  } else if constexpr (requires { given.inputs, given.labels; }) {
    return {side_of(given.inputs), side_of(given.labels)};
  } else if constexpr (requires { given.data, given.target; }) {  // torch::data::Example
    return {side_of(given.data), side_of(given.target)};
  } else if constexpr (requires { given.first, given.second; }) {
    return {side_of(given.first), side_of(given.second)};
  } else if constexpr (IsTensor<T>) {  // also an Example without a target
    return {{at::Tensor(given)}, {}};
  } else if constexpr (Iterable<const T>) {  // a loader that does not stack its examples
    static_assert(!IsTensor<std::remove_cvref_t<decltype(*std::begin(given))>>,
                  "a list of tensors may be samples or inputs: give batches as {inputs, labels}, "
                  "or specialize stagecraft::BatchOf");
    std::vector<LabeledBatch> samples;
    for (const auto& one : given) {
      samples.push_back(batch_of(one));
    }
    return stacked(samples);
  } else {
    static_assert(kNoBatch<T>,
                  "a batch has inputs and labels, or data and target, or is a pair of both; for a "
                  "type of yours specialize stagecraft::BatchOf");
  }
}

/// Returns the range to iterate over: the loader itself, or the object that it points at.
template <class Loader>
[[nodiscard]] auto& range_of(Loader& loader) {
  if constexpr (Iterable<Loader>) {
    return loader;
  } else {
    return *loader;
  }
}

template <class Range>
class RangeSource final : public BatchSource {
 public:
  explicit RangeSource(Range& range) : range_(range) {}

  void begin_epoch() override {
    at_.emplace(std::begin(range_), std::end(range_));
    first_ = true;
  }

  std::optional<LabeledBatch> next() override {
    auto& [here, end] = *at_;
    if (!std::exchange(first_, false)) {
      ++here;
    }
    if (here == end) {
      at_.reset();
      return std::nullopt;
    }
    return batch_of<std::remove_cvref_t<decltype(*here)>>(*here);
  }

 private:
  using Begin = decltype(std::begin(std::declval<Range&>()));
  using End = decltype(std::end(std::declval<Range&>()));

  Range& range_;
  std::optional<std::pair<Begin, End>> at_;
  bool first_ = true;
};

}  // namespace internal
}  // namespace stagecraft
