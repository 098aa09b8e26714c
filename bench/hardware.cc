#include "stagecraft/bench/hardware.h"

#include <cstdlib>
#include <fstream>
#include <thread>

#include <ATen/Version.h>
#include <fmt/format.h>
#include <torch/version.h>

namespace stagecraft::bench {

std::string hardware() {
  std::ifstream info("/proc/cpuinfo");
  std::string line, model = "unknown processor";
  while (std::getline(info, line)) {
    if (line.starts_with("model name")) {
      model = line.substr(line.find(':') + 2);
      break;
    }
  }
  return fmt::format("{}, {} processors, g++ {}, LibTorch {} ({})",
                     model,
                     std::thread::hardware_concurrency(),
                     __VERSION__,
                     TORCH_VERSION,
                     at::get_cpu_capability());
}

double load() {
  double minute = 0.0;
  return getloadavg(&minute, 1) == 1 ? minute : 0.0;
}

}  // namespace stagecraft::bench
