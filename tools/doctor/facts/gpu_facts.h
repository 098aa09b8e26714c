/// GpuFacts holds the GPUs and their libraries that this program could compute with.
///
/// It loads the installed libraries by name: the build needs no CUDA.
#pragma once

#include <string>

namespace stagecraft::tools {

struct GpuFacts {
  std::string missing;       ///< why ranks cannot use CUDA here; empty: they can
  std::string remedy;        ///< what mends that
  int runtime = 0;           ///< version of the CUDA beside LibTorch: 13000 is 13.0; 0: none
  int driver = 0;            ///< the newest CUDA that the machine's driver supports; 0: no driver
  int visible = 0;           ///< GPUs that a program sees
  double memory = 0.0;       ///< bytes of the smallest of them; 0: unknown
  std::string visible_says;  ///< CUDA_VISIBLE_DEVICES, if it is set
  std::string nccl;          ///< "2.28.9"; empty: not found
};

[[nodiscard]] GpuFacts gpu_facts();

/// Returns "13.0" for 13000.
[[nodiscard]] std::string cuda_version(int number);

}  // namespace stagecraft::tools
