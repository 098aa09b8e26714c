/// cost_models holds the models that GraphPipe was measured on, as cost graphs with their sizes as
/// parameters, and a large random graph.
///
/// write_costs.cc writes them to a costs.json; bench/planners and tests read them.
/// Source: Jeon et al., "GraphPipe: Improving Performance and Scalability of DNN Training with
///         Graph Pipeline Parallelism", appendix A.2.
#pragma once

#include <span>
#include <string_view>

#include "stagecraft/examples/costs/cost_graph.h"

namespace stagecraft::examples {

struct TransformerShape {
  int branches = 4;
  int layers = 8;       ///< of a branch
  double tokens = 256;  ///< of a sample, in each branch
  double width = 1024;
  double hidden = 4096;  ///< of the feed-forward
  int heads = 16;
};
/// Returns MMT: branches of transformer layers (attention and two linear operators each),
/// concatenated and projected.
[[nodiscard]] Costs transformer_branches(const TransformerShape& shape = {},
                                         const CostDeviceModel& device = {});

struct FeedForwardShape {
  int branches = 7;
  int layers = 4;  ///< of a branch
  double width = 4096;
  int sparse = 0;  ///< further branches that look up an embedding
  double sparse_width = 64;
  double table_rows = 100'000;
  double top_width = 1024;  ///< after the branches meet
};
/// Returns CANDLE-Uno, and DLRM with `sparse` branches.
[[nodiscard]] Costs feed_forward_branches(const FeedForwardShape& shape = {},
                                          const CostDeviceModel& device = {});

struct SkipChainShape {
  int operators = 2000;
  unsigned seed = 1;
};
/// Returns a chain of operators of uneven times and bytes. Every tenth or so also reads an earlier
/// one. Equal shapes make equal costs.
[[nodiscard]] Costs skip_chain(const SkipChainShape& shape = {});

struct CostModel {
  std::string_view name;
  std::string_view summary;
  Costs (*costs)() = nullptr;
};
/// Returns "mmt", "dlrm", "candle-uno", "case-study", "transformer" (a chain) and "skips".
[[nodiscard]] std::span<const CostModel> cost_models();

/// Returns the model. Errors: UsageArgument for an unknown name.
[[nodiscard]] const CostModel& find_cost_model(std::string_view name);

}  // namespace stagecraft::examples
