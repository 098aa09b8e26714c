#include "stagecraft/tools/doctor/facts/host_facts.h"

#include <sys/resource.h>

#include <algorithm>
#include <limits>
#include <thread>

#include "stagecraft/actors/launch/port/build_fingerprint.h"
#include "stagecraft/base/error.h"
#include "stagecraft/base/process/host_name.h"
#include "stagecraft/futures/transport/shared_memory/memory_file.h"

namespace stagecraft::tools {
namespace {

std::string memfd_fault() {
  try {
    (void)MemoryFile::make(MemoryFile::kPage);
    return "";
  } catch (const Error& error) {
    return error.message();
  }
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
  facts.cpu = processor_of_this_process();
  facts.processors = static_cast<int>(std::thread::hardware_concurrency());
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
