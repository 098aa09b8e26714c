/// KeptBytes: what the operators of a graph hold from forward to backward and while they run, each
/// value counted with the first that keeps it.
///
/// Asked by measure_operators, operator by operator in the order of the graph. One thread.
#pragma once

#include <set>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/graph.h"
#include "stagecraft/compiler/lone_node.h"

namespace stagecraft {

class KeptBytes {
 public:
  explicit KeptBytes(const Graph& graph) : graph_(graph) {}

  struct Bytes {
    double kept = 0;
    double transient = 0;  ///< most at once while it runs
  };
  /// Runs the node on `leaves`, one for each of its inputs. `counts`: those behind it no longer
  /// count what it keeps.
  [[nodiscard]] Bytes measure(const LoneNode& node,
                              const std::vector<at::Tensor>& leaves,
                              bool counts);

 private:
  const Graph& graph_;
  std::set<int> counted_;  // alias sets
};

}  // namespace stagecraft
