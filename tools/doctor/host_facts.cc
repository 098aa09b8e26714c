#include "stagecraft/tools/doctor/host_facts.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>
#include <thread>

#include <ATen/Version.h>

#include "stagecraft/actors/launch/control_port.h"
#include "stagecraft/base/host_name.h"

namespace stagecraft::tools {
namespace {

/// By these ATen, MKL and oneDNN choose between codes that sum in other orders.
constexpr std::array kFeatures{"avx2",
                               "fma",
                               "avx512f",
                               "avx512dq",
                               "avx512_vnni",
                               "avx512_bf16",
                               "avx512_fp16",
                               "avx_vnni",
                               "amx_tile"};

/// And these bind them to one.
constexpr std::array kVariables{"ATEN_CPU_CAPABILITY", "MKL_CBWR", "ONEDNN_MAX_CPU_ISA"};

/// Of the first processor.
void add_processor(HostFacts& facts) {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line) && !line.empty();) {
    const std::size_t colon = line.find(": ");
    const std::string value = colon == std::string::npos ? "" : line.substr(colon + 2);
    if (line.starts_with("vendor_id")) {
      facts.vendor = value;
    } else if (line.starts_with("model name")) {
      facts.processor = value;
    } else if (line.starts_with("flags")) {
      std::istringstream words(value);
      for (std::string word; words >> word;) {
        if (std::ranges::find(kFeatures, word) != kFeatures.end()) {
          facts.features.push_back(word);
        }
      }
    }
  }
  std::ranges::sort(facts.features);
}

std::string memfd_fault() {
  const int file = memfd_create("stagecraft-doctor", MFD_CLOEXEC);
  const bool good = file >= 0 && ftruncate(file, 1) == 0;
  const std::string fault = good ? "" : strerror(errno);
  if (file >= 0) {
    close(file);
  }
  return fault;
}

std::int64_t as_number(rlim_t limit) {
  const auto most = static_cast<rlim_t>(std::numeric_limits<std::int64_t>::max());
  return limit == RLIM_INFINITY ? -1 : static_cast<std::int64_t>(std::min(limit, most));
}

}  // namespace

HostFacts facts_of_this_machine() {
  HostFacts facts;
  facts.name = host_name();
  facts.protocol = kProtocol;
  facts.build = build_fingerprint();
  add_processor(facts);
  facts.processors = static_cast<int>(std::thread::hardware_concurrency());
  facts.capability = at::get_cpu_capability();
  for (const char* variable : kVariables) {
    if (const char* value = std::getenv(variable); value != nullptr) {
      facts.variables.emplace(variable, value);
    }
  }
  facts.memory = memory_limits(/*threads=*/0);
  facts.memfd = memfd_fault();
  struct rlimit limit {};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0) {
    facts.locked_bytes = as_number(limit.rlim_cur);
  }
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    facts.open_files = as_number(limit.rlim_max);
  }
  facts.gpu = gpu_facts();
  return facts;
}

}  // namespace stagecraft::tools
