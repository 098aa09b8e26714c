#include "stagecraft/compiler/libtorch/program_device.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

namespace stagecraft {

const at::Generator& default_generator() {
  return at::detail::getDefaultCPUGenerator();
}

at::Generator seeded_generator(std::uint64_t seed, const c10::Device& device) {
  if (is_program_device(device)) {
    return at::make_generator<at::CPUGeneratorImpl>(seed);
  }
  at::Generator made = at::globalContext()
                           .getAcceleratorHooksInterface(device.type())
                           .getNewGenerator(device.index());
  made.set_current_seed(seed);
  return made;
}

}  // namespace stagecraft
