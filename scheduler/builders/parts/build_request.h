/// BuildRequest holds a caller's request to a builder of the registry. Builders read their own
/// parameters from it.
///
/// Parameters are words by name, as on a command line. A value; any thread may use it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/scheduler/costs/costs.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

struct BuildRequest {
  int devices = 0;  ///< rows; 0 if the graph gives the number
  int microbatches = 0;
  std::optional<int> chunks;               ///< stages per row, for builders that leave it open
  std::optional<StageGraph> graph;         ///< for the builders of stage DAGs
  std::map<std::string, std::string> set;  ///< further parameters by name
  std::optional<Costs> costs;              ///< for the builders that use costs

  /// Each returns the value of the parameter. Errors: UsageArgument, with its name, for any other
  /// word.
  [[nodiscard]] int number(const std::string& name, int fallback) const;
  [[nodiscard]] bool flag(const std::string& name) const;                  ///< 0 or 1; absent: 0
  [[nodiscard]] std::vector<int> numbers(const std::string& name) const;   ///< "2,1"; absent: none
  [[nodiscard]] std::vector<double> times(const std::string& name) const;  ///< likewise, from 0 on
};

}  // namespace stagecraft
