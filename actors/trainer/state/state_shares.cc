#include "stagecraft/actors/trainer/state/state_shares.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

#include <ATen/ops/empty.h>

#include "stagecraft/actors/executor/optimizer/state_names.h"
#include "stagecraft/base/check.h"

namespace stagecraft {

at::IntArrayRef whole_sizes(const Graph& graph, const std::string& name) {
  const auto parameter = [&](const std::string& of) {
    return std::ranges::find(graph.parameters, of, &NamedTensor::name);
  };
  auto found = parameter(name);
  if (found == graph.parameters.end()) {
    found = parameter(name.substr(name.find(':') + 1));
  }
  SC_CHECK(found != graph.parameters.end(), "only a parameter and its state are shared: " + name);
  return found->tensor.sizes();
}

std::vector<NamedTensor> join_shares(const Graph& graph, const std::vector<NamedTensor>& state) {
  struct Whole {
    std::size_t position = 0;
    std::int64_t missing = 0;
  };
  std::vector<NamedTensor> result;
  std::map<std::string, Whole> joined;
  for (const NamedTensor& given : state) {
    const auto share = share_named(given.name);
    if (!share) {
      result.push_back(given);
      continue;
    }
    const auto [place, is_first] = joined.try_emplace(share->name);
    Whole& whole = place->second;
    if (is_first) {
      whole.position = result.size();
      result.push_back(
          {share->name, at::empty(whole_sizes(graph, share->name), given.tensor.options())});
      whole.missing = result.back().tensor.numel();
    }
    result[whole.position]
        .tensor.view(-1)
        .narrow(0, share->begin, share->end - share->begin)
        .copy_(given.tensor);
    whole.missing -= share->end - share->begin;
  }
  for (const auto& [name, whole] : joined) {
    SC_CHECK(whole.missing == 0, "the ranks together have all shares of " + name);
  }
  return result;
}

}  // namespace stagecraft
