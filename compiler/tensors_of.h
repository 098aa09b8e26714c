/// TensorsOf: how a type of yours is made of tensors, and taken apart into them: what a module's
/// forward may take and return beyond the types that are known anyway (structured_call.h,
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

/// The tensors of a microbatch, handed out in the order of the batch to whatever forward takes.
class TensorReader {
 public:
  /// `names`: of each tensor, empty for one that has none; no list: none has.
  explicit TensorReader(std::vector<at::Tensor> tensors, std::vector<std::string> names = {});

  [[nodiscard]] bool done() const { return next_ == tensors_.size(); }

  /// Errors: UsageArgument when there is none left.
  [[nodiscard]] at::Tensor next();

  /// The name of the one that comes next. Errors: UsageArgument when it has none.
  [[nodiscard]] std::string next_name() const;

  /// Errors: UsageArgument when some are left.
  void require_done() const;

 private:
  std::vector<at::Tensor> tensors_;
  std::vector<std::string> names_;
  std::size_t next_ = 0;
};

/// The one customisation point: specialise it with `make` for what forward takes, with `list` for
/// what it returns, or with both.
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
