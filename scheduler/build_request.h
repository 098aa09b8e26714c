/// BuildRequest: what a builder of the registry is asked for, and how it reads its own parameters
/// from that.
///
/// Parameters come as words, by name, as they stand on a command line. Values; any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/scheduler/costs.h"
#include "stagecraft/scheduler/stage_graph.h"

namespace stagecraft {

struct BuildRequest {
  int devices = 0;  ///< rows; 0 where the graph says how many
  int microbatches = 0;
  std::optional<int> chunks;               ///< stages per row, for builders that leave it open
  std::optional<StageGraph> graph;         ///< for the builders of stage DAGs
  std::map<std::string, std::string> set;  ///< further parameters by name
  std::optional<Costs> costs;              ///< for the builders that look at costs

  /// Each returns what the parameter is set to. Errors: UsageArgument naming it, for another word.
  [[nodiscard]] int number(const std::string& name, int fallback) const;
  [[nodiscard]] bool flag(const std::string& name) const;                  ///< 0 or 1; absent: 0
  [[nodiscard]] std::vector<int> numbers(const std::string& name) const;   ///< "2,1"; absent: none
  [[nodiscard]] std::vector<double> times(const std::string& name) const;  ///< likewise, from 0 on
};

}  // namespace stagecraft
