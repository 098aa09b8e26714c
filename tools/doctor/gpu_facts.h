/// GpuFacts: what this program could compute with besides processors.
///
/// Asked of the libraries that are there, by name: no CUDA is needed to build this, and a build
/// without LibTorch's CUDA part says so.
#pragma once

#include <string>

namespace stagecraft::tools {

struct GpuFacts {
  bool linked = false;       ///< LibTorch's CUDA part is in this program
  int runtime = 0;           ///< of CUDA, beside LibTorch: 13000 is 13.0; 0: none
  int driver = 0;            ///< the newest CUDA that the machine's driver serves; 0: no driver
  int visible = 0;           ///< GPUs that a program sees
  std::string visible_says;  ///< CUDA_VISIBLE_DEVICES, where it is set
  std::string nccl;          ///< "2.28.9"; empty: not found
};

[[nodiscard]] GpuFacts gpu_facts();

/// "13.0"
[[nodiscard]] std::string cuda_version(int number);

}  // namespace stagecraft::tools
