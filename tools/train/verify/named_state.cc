#include "stagecraft/tools/train/verify/named_state.h"

#include <set>

#include "stagecraft/compiler/program/compiled_program.h"

namespace stagecraft::tools {

NamedTensors first_names(const Program& program, const std::vector<NamedTensor>& all) {
  std::set<std::string> further;
  for (const StateName& known : program.compiled().state_names) {
    if (known.name != known.first) {
      further.insert(known.name);
    }
  }
  NamedTensors first;
  for (const NamedTensor& t : all) {
    if (!further.contains(t.name)) {
      first.emplace_back(t.name, t.tensor);
    }
  }
  return first;
}

}  // namespace stagecraft::tools
