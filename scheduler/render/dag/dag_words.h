/// dag_words has the texts of a node in pictures and pages of a DAG.
///
/// Private to render/. Pure.
#pragma once

#include <string>

#include "stagecraft/scheduler/dag/dag.h"

namespace stagecraft::drawing {

/// NodeLabel is the text inside a node: one line or two.
struct NodeLabel {
  std::string first;
  std::string second;  ///< may be empty
};

/// Returns "0F3"; "send" over "0F3" with an arrow to "1"; "all_reduce" over "stage 0", or over
/// "stage 0.2" for a chunk of several; "vote". A reduce_scatter is short: "scatter".
[[nodiscard]] NodeLabel node_label(const TrainingDag& dag, int node);

}  // namespace stagecraft::drawing
