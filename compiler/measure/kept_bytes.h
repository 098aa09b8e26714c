/// KeptBytes measures the bytes that the operators of a graph hold from forward to backward and
/// while they run. Each value is counted once, with the operator that made its memory.
///
/// measure_operators calls it, operator by operator in the order of the graph, on one thread.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/graph/graph.h"
#include "stagecraft/compiler/measure/single_operator.h"

namespace stagecraft {

class KeptBytes {
 public:
  explicit KeptBytes(const Graph& graph);

  struct Bytes {
    double kept = 0;
    double transient = 0;  ///< the most at once while it runs, including its results
  };
  /// Runs the node on `leaves`, one for each of its inputs. `number`: its place in the graph.
  /// Memory of other operators that the node keeps is counted for those operators (kept_by_others).
  /// Later operators no longer count the memory that this node keeps.
  [[nodiscard]] Bytes measure(const SingleOperator& node,
                              const std::vector<at::Tensor>& leaves,
                              std::size_t number);

  /// Returns how many bytes of the operator's results other operators keep, as far as measured.
  [[nodiscard]] double kept_by_others(std::size_t node) const { return kept_by_others_[node]; }

 private:
  /// Maker is the operator that made a piece of memory, with the number of bytes.
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
