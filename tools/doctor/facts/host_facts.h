/// HostFacts is a machine's answer when the doctor asks. It holds only facts. Other code judges
/// them (machine_checks.h, pair_checks.h), so that all faults of any machine follow from its facts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stagecraft/actors/executor/device/processor.h"
#include "stagecraft/tools/common/memory_limits.h"
#include "stagecraft/tools/doctor/facts/gpu_facts.h"

namespace stagecraft::tools {

struct HostFacts {
  std::string name;  ///< the machine's own name
  std::uint32_t protocol = 0;
  std::string build;  ///< build_fingerprint()

  ProcessorFacts cpu;
  int processors = 0;  ///< that this process may use

  std::vector<MemoryLimit> memory;  ///< memory_limits()
  std::string memfd;                ///< the reason why memfd cannot share memory; empty: it can
  std::int64_t locked_bytes = 0;    ///< RLIMIT_MEMLOCK; -1: no limit
  std::int64_t open_files = 0;      ///< hard limit of RLIMIT_NOFILE: programs raise theirs to it

  GpuFacts gpu;
};

[[nodiscard]] HostFacts facts_of_this_machine();

}  // namespace stagecraft::tools
