#include "stagecraft/compiler/libtorch/program_device.h"

#include <ATen/CPUGeneratorImpl.h>

namespace stagecraft {

const at::Generator& default_generator() {
  return at::detail::getDefaultCPUGenerator();
}

at::Generator seeded_generator(std::uint64_t seed) {
  return at::make_generator<at::CPUGeneratorImpl>(seed);
}

}  // namespace stagecraft
