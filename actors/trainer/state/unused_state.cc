#include "stagecraft/actors/trainer/state/unused_state.h"

#include <cstddef>
#include <set>
#include <string_view>

#include "stagecraft/actors/executor/optimizer/state_names.h"

namespace stagecraft {

UnusedState::UnusedState(const CompiledProgram& program) {
  const auto keep = [this](std::string_view kind,
                           const std::vector<NamedTensor>& all,
                           const std::set<int>& used) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!used.contains(static_cast<int>(i))) {
        tensors_.push_back({state_name(kind, all[i].name), all[i].tensor.detach().clone()});
      }
    }
  };
  keep(kWeight,
       program.graph.parameters,
       positions_in(program.partition, &StageProgram::parameters));
  keep(kBuffer, program.graph.buffers, positions_in(program.partition, &StageProgram::buffers));
}

void UnusedState::replace(const std::function<at::Tensor(const std::string&)>& source) {
  for (const StateTensor& kept : tensors_) {
    kept.tensor.copy_(source(kept.name));
  }
}

}  // namespace stagecraft
