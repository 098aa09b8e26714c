/// LocalBatch is a batch that the driver does not send: every rank reads the part that it needs
/// where it runs.
///
/// Trainer::step takes it in place of tensors, and the order of the step names it. The program in
/// which a rank runs registers sources by name (actors/data/local_source.h).
#pragma once

#include <cstdint>
#include <string>

namespace stagecraft {

struct LocalBatch {
  std::string source;       ///< its registered name; empty: none, the driver sends tensors
  std::string argument;     ///< argument of the source's maker, for instance a path
  std::int64_t number = 0;  ///< number of the batch, from 0

  friend bool operator==(const LocalBatch&, const LocalBatch&) = default;
};

template <class V>
decltype(auto) visit_fields(LocalBatch& m, V&& v) {
  return v(m.source, m.argument, m.number);
}

}  // namespace stagecraft
