/// LocalBatch: a batch that is not sent: every rank that needs some of it reads that where it runs.
///
/// What a trainer is given in place of tensors (Trainer::step), and what the order of a step says
/// then. Sources are registered by name in the program that a rank runs in (actors/local_source.h).
#pragma once

#include <cstdint>
#include <string>

namespace stagecraft {

struct LocalBatch {
  std::string source;       ///< the name it is registered under; empty: none, the driver sends
  std::string argument;     ///< what the source is made with, a path for instance
  std::int64_t number = 0;  ///< which of its batches, from 0

  friend bool operator==(const LocalBatch&, const LocalBatch&) = default;
};

template <class V>
decltype(auto) visit_fields(LocalBatch& m, V&& v) {
  return v(m.source, m.argument, m.number);
}

}  // namespace stagecraft
