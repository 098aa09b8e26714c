/// FixedValues: which values of a graph are the same in every run: those that hang on constants and
/// on buffers that no operator writes (the edges of a graph, a mask, a table of positions). What a
/// module decides by them, and shapes that they make, may be frozen. Kept by the recorder.
///
/// A buffer that is loaded later may hold other values: replays keep the shapes of those that were
/// there.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "stagecraft/compiler/graph.h"

namespace stagecraft {

class FixedValues {
 public:
  /// Requires: the graph outlives this.
  explicit FixedValues(const Graph& graph) : graph_(graph) {}

  /// Whether the value is fixed, as far as the graph has been recorded. One that is has been relied
  /// upon from now on.
  [[nodiscard]] bool rely_on(ValueId value);

  /// Errors: CompileCapture where an operator has written a buffer that was relied upon.
  void check() const;

 private:
  [[nodiscard]] std::set<int> written_sets() const;

  const Graph& graph_;
  std::set<ValueId> buffers_;  ///< that were relied upon
};

}  // namespace stagecraft
