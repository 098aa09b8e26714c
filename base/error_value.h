/// ErrorValue carries an Error across an actor message; a chain of them carries its causes.
///
/// A worker makes the chain when it answers; the reader turns it back into an Error when its future
/// fails. An empty chain means that nothing failed.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "stagecraft/base/error.h"

namespace stagecraft {

struct ErrorValue {
  static constexpr std::int64_t kAbsent = std::numeric_limits<std::int64_t>::min();

  Errc code = Errc::Internal;
  std::string text;
  std::string option;
  std::string advice;
  std::int64_t rank = kAbsent;
  std::int64_t stage = kAbsent;
  std::int64_t microbatch = kAbsent;
  std::int64_t step = kAbsent;
  std::string task;
  std::string peer;
};

template <class Visitor>
decltype(auto) visit_fields(ErrorValue& m, Visitor&& visit) {
  return visit(
      m.code, m.text, m.option, m.advice, m.rank, m.stage, m.microbatch, m.step, m.task, m.peer);
}

/// Holds the error first, then its causes, one after the other.
using ErrorChain = std::vector<ErrorValue>;

[[nodiscard]] ErrorChain to_chain(const Error& error);

/// Requires: the chain is not empty.
[[nodiscard]] Error to_error(const ErrorChain& chain);

}  // namespace stagecraft
