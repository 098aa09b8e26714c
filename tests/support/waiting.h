/// Holds what tests that wait for futures share: deadlines, tensors that can be told apart, and the
/// codes of failures.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include "stagecraft/futures/future.h"
#include "stagecraft/tests/support/eventually.h"

namespace stagecraft {

/// Ends a test that would otherwise hang; no passing test comes near it.
inline constexpr std::chrono::seconds kTestPatience{60};

inline Deadline patience() {
  return std::chrono::steady_clock::now() + kTestPatience;
}

/// Returns a deadline that is over: for asking without waiting.
inline Deadline already_over() {
  return std::chrono::steady_clock::now() - std::chrono::seconds(1);
}

inline at::Tensor number(std::int64_t value) {
  return at::full({1}, value, at::kLong);
}

inline std::int64_t number_in(const at::Tensor& tensor) {
  return *tensor.const_data_ptr<std::int64_t>();
}

/// Returns the number that arrives; nothing if none arrives in time. Rethrows the future's error.
inline std::optional<std::int64_t> number_from(const Future<at::Tensor>& future) {
  if (!future.wait_until(patience())) {
    return std::nullopt;
  }
  return number_in(future.get());
}

/// Returns the code a future fails with; nothing if it has a value or never completes.
template <class T>
std::optional<Errc> failure_of(const Future<T>& future) {
  if (!future.wait_until(patience())) {
    return std::nullopt;
  }
  try {
    static_cast<void>(future.get());
    return std::nullopt;
  } catch (const Error& error) {
    return error.code();
  }
}

/// Returns the code of the Error that `work` throws; nothing if it throws none.
template <class Work>
std::optional<Errc> thrown_by(Work&& work) {
  try {
    work();
    return std::nullopt;
  } catch (const Error& error) {
    return error.code();
  }
}

}  // namespace stagecraft
