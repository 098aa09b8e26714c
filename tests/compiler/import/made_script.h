/// save_script makes a file of TorchScript from its code.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/compiler/module/named_tensor.h"

namespace stagecraft::testing {

/// Saves a module with these parameters. `code`: its methods, in Python.
void save_script(const std::string& path,
                 const std::string& code,
                 const std::vector<NamedTensor>& parameters);

}  // namespace stagecraft::testing
