/// KeptBytes: what the operators of a graph hold from forward to backward and while they run, each
/// value counted once, with the operator that made its memory.
///
/// Asked by measure_operators, operator by operator in the order of the graph. One thread.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/graph.h"
#include "stagecraft/compiler/lone_node.h"

namespace stagecraft {

class KeptBytes {
 public:
  explicit KeptBytes(const Graph& graph);

  struct Bytes {
    double kept = 0;
    double transient = 0;  ///< most at once while it runs, with what it makes
  };
  /// Runs the node on `leaves`, one for each of its inputs. `number`: its place in the graph. What
  /// it keeps of other operators' memory is theirs (kept_by_others); operators behind it no longer
  /// count what it keeps.
  [[nodiscard]] Bytes measure(const LoneNode& node,
                              const std::vector<at::Tensor>& leaves,
                              std::size_t number);

  /// Of what the operator made, the bytes that others were seen to keep.
  [[nodiscard]] double kept_by_others(std::size_t node) const { return kept_by_others_[node]; }

 private:
  /// Who made a piece of memory, of how many bytes.
  struct Maker {
    std::size_t node = 0;
    double bytes = 0;
  };

  const Graph& graph_;
  std::set<int> counted_;        // alias sets
  std::map<int, Maker> makers_;  // by alias set
  std::vector<double> kept_by_others_;
};

}  // namespace stagecraft
