/// TensorsOf defines how to make a type of yours from tensors, and how to take it apart into them.
/// It extends the built-in types that a module's forward may take and return (structured_call.h,
/// tensors_in.h).
///
///   template <>
///   struct stagecraft::TensorsOf<Ragged> {
///     static Ragged make(TensorReader& in) { return Ragged(in.next(), in.next()); }
///     static std::vector<at::Tensor> list(const Ragged& r) { return {r.values(), r.offsets()}; }
///   };
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace stagecraft {

/// TensorReader hands out the tensors of a microbatch, in the order of the batch, to the arguments
/// of forward.
class TensorReader {
 public:
  /// `names`: of each tensor, empty for one without a name. Without the list no tensor has a name.
  explicit TensorReader(std::vector<at::Tensor> tensors, std::vector<std::string> names = {});

  [[nodiscard]] bool done() const { return next_ == tensors_.size(); }

  /// Returns the next tensor. Errors: UsageArgument if none is left.
  [[nodiscard]] at::Tensor next();

  /// Returns the name of the next tensor. Errors: UsageArgument if it has none.
  [[nodiscard]] std::string next_name() const;

  /// Checks the end. Errors: UsageArgument if some are left.
  void require_done() const;

 private:
  std::vector<at::Tensor> tensors_;
  std::vector<std::string> names_;
  std::size_t next_ = 0;
};

/// TensorsOf is the one customization point. Specialize it with `make` for types that forward
/// takes, with `list` for types that it returns, or with both.
template <class T>
struct TensorsOf {};

namespace internal {

template <class T>
concept MadeByUser = requires(TensorReader& in) {
  { TensorsOf<T>::make(in) } -> std::convertible_to<T>;
};

template <class T>
concept ListedByUser = requires(const T& value) {
  { TensorsOf<T>::list(value) } -> std::convertible_to<std::vector<at::Tensor>>;
};

}  // namespace internal
}  // namespace stagecraft
