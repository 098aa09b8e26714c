/// HostFacts: what a machine says of itself when the doctor asks: facts alone, judged elsewhere
/// (machine_checks.h, pair_checks.h), so that what is wrong with any machine can be told from them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stagecraft/actors/launch/processor.h"
#include "stagecraft/tools/doctor/gpu_facts.h"
#include "stagecraft/tools/train/memory_limits.h"

namespace stagecraft::tools {

struct HostFacts {
  std::string name;  ///< as the machine calls itself
  std::uint32_t protocol = 0;
  std::string build;  ///< build_fingerprint()

  ProcessorFacts cpu;
  int processors = 0;  ///< that this process may use

  std::vector<MemoryLimit> memory;  ///< memory_limits()
  std::string memfd;                ///< why no memory can be shared by it; empty: it can
  std::int64_t locked_bytes = 0;    ///< RLIMIT_MEMLOCK; -1: no limit
  std::int64_t open_files = 0;      ///< RLIMIT_NOFILE's hard limit, to which programs raise theirs

  GpuFacts gpu;
};

[[nodiscard]] HostFacts facts_of_this_machine();

}  // namespace stagecraft::tools
