#include "stagecraft/compiler/capture/fixed_values.h"

#include <cstddef>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {

bool FixedValues::rely_on(ValueId value) {
  const std::set<int> written = written_sets();
  std::set<ValueId> buffers, seen;
  std::vector<ValueId> ahead{value};
  while (!ahead.empty()) {
    const ValueId id = ahead.back();
    ahead.pop_back();
    if (!seen.insert(id).second) {
      continue;
    }
    const Value& facts = graph_.at(id);
    if (written.contains(facts.alias_set)) {
      return false;
    }
    switch (facts.kind) {
      case ValueKind::Constant:
        break;
      case ValueKind::Buffer:
        buffers.insert(id);
        break;
      case ValueKind::Computed: {
        const Node& node = graph_.nodes[static_cast<std::size_t>(facts.position)];
        if (node.random_index >= 0) {
          return false;
        }
        const std::vector<ValueId> reads = reads_of(node);
        ahead.insert(ahead.end(), reads.begin(), reads.end());
        break;
      }
      case ValueKind::Input:
      case ValueKind::Label:
      case ValueKind::Parameter:
        return false;
    }
  }
  buffers_.merge(buffers);
  return true;
}

void FixedValues::check() const {
  const std::set<int> written = written_sets();
  for (const ValueId buffer : buffers_) {
    if (written.contains(graph_.at(buffer).alias_set)) {
      throw Error(
          Errc::CompileCapture,
          fmt::format("the buffer {} decides a shape or a branch of the module, and a later "
                      "operator writes it, so the next microbatch would see other values: "
                      "use one buffer for the decision and another for the writes",
                      value_name(graph_, buffer)));
    }
  }
}

std::set<int> FixedValues::written_sets() const {
  std::set<int> sets;
  for (const Node& node : graph_.nodes) {
    for (const ValueId written : node.writes) {
      sets.insert(graph_.at(written).alias_set);
    }
  }
  return sets;
}

}  // namespace stagecraft
