#include "stagecraft/tests/compiler/import/made_script.h"

#include <torch/csrc/jit/api/module.h>

namespace stagecraft::testing {

void save_script(const std::string& path,
                 const std::string& code,
                 const std::vector<NamedTensor>& parameters) {
  torch::jit::Module module("Made");
  for (const NamedTensor& parameter : parameters) {
    module.register_parameter(parameter.name, parameter.tensor, /*is_buffer=*/false);
  }
  module.define(code);
  module.save(path);
}

}  // namespace stagecraft::testing
