/// FixedValues knows which values of a graph are the same in every run: those that depend only on
/// constants and on buffers that no operator writes (the edges of a graph, a mask, a table of
/// positions). Decisions that a module makes by these values, and shapes that they determine, may
/// be frozen. The recorder holds it.
///
/// A buffer that is loaded later may hold other values. Replays keep the shapes that the captured
/// values gave.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "stagecraft/compiler/graph/graph.h"

namespace stagecraft {

class FixedValues {
 public:
  /// Requires: the graph outlives this object.
  explicit FixedValues(const Graph& graph) : graph_(graph) {}

  /// Returns whether the value is fixed, according to the graph recorded so far. If it is, check()
  /// later makes sure that it stayed so.
  [[nodiscard]] bool rely_on(ValueId value);

  /// Checks the buffers. Errors: CompileCapture if an operator has written a buffer that rely_on()
  /// used.
  void check() const;

 private:
  [[nodiscard]] std::set<int> written_sets() const;

  const Graph& graph_;
  std::set<ValueId> buffers_;  ///< buffers that rely_on() used
};

}  // namespace stagecraft
