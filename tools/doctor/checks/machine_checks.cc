#include "stagecraft/tools/doctor/checks/machine_checks.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/base/count_text.h"
#include "stagecraft/tools/doctor/talk/limits.h"

namespace stagecraft::tools {
namespace {

/// The result of one check of a machine.
struct Verdict {
  Level level = Level::Ok;
  std::string what;
  std::string remedy = {};
};

Verdict silence_of(const HostExam& exam) {
  const bool out_of_reach = exam.silence.starts_with("is out of reach");
  return {Level::Problem,
          fmt::format("{} {}", exam.name, exam.silence),
          out_of_reach
              ? fmt::format("`ssh {} true` has to work from here without a question: see that the "
                            "host is up, its sshd lets this user in by key, and the name is known; "
                            "--ssh gives ssh other options",
                            exam.name)
              : fmt::format("install the same build of Stagecraft there at {}, or name its place "
                            "in worker= of the host's line",
                            exam.program)};
}

Verdict build_of(const HostExam& exam) {
  const std::string build = fmt::format("protocol {}, {}", exam.facts->protocol, exam.facts->build);
  if (exam.own_program) {
    return {Level::Note,
            fmt::format("{}; its workers run a program of your own, which was not asked", build),
            "link that program with this build"};
  }
  return {Level::Ok, build};
}

Verdict processor_of(const HostFacts& facts) {
  return {Level::Ok,
          fmt::format("{}, {}, computes with {}",
                      facts.cpu.name.empty() ? "unknown" : facts.cpu.name,
                      count_text(facts.processors, "processor"),
                      facts.cpu.capability)};
}

Verdict memory_of(const HostFacts& facts, int workers) {
  if (facts.memory.empty()) {
    return {Level::Note, "the kernel does not say how much is left"};
  }
  const MemoryLimit& tightest = facts.memory.front();
  const int processes = std::max(workers, 1);
  const double needed = kWorkerBytes * processes;
  const std::string left = fmt::format("{} left by {}", bytes_text(tightest.bytes), tightest.who);
  if (tightest.bytes >= needed) {
    return {Level::Ok, left};
  }
  return {Level::Problem,
          fmt::format("{}; {} take {} before they hold anything",
                      left,
                      count_text(processes, "process"),
                      bytes_text(needed)),
          "end other programs there, raise the limit (memory.max of the control group, --mem of a "
          "job, resources.limits of a pod), or give the host fewer slots"};
}

Verdict memfd_of(const HostFacts& facts) {
  if (facts.memfd.empty()) {
    return {Level::Ok, "workers of this host send each other tensors through it"};
  }
  return {Level::Note,
          facts.memfd + "; workers of this host send each other tensors through sockets",
          "let the container's seccomp profile allow memfd_create and fallocate"};
}

Verdict locked_of(const HostFacts& facts) {
  const std::string limit =
      facts.locked_bytes < 0 ? "no limit" : bytes_text(static_cast<double>(facts.locked_bytes));
  if (facts.locked_bytes < 0 || facts.gpu.visible == 0) {
    return {Level::Ok, limit};
  }
  return {Level::Note,
          limit + " for each process; NCCL locks what it sends over InfiniBand",
          "ulimit -l unlimited, LimitMEMLOCK=infinity of a systemd unit, or memlock in "
          "/etc/security/limits.conf"};
}

/// A driver connects to all workers, a worker to the driver and all other workers.
Verdict files_of(const HostExam& exam, int workers) {
  const bool drives = exam.name == kHere;
  const std::int64_t needed = kSpareFiles +
                              (drives ? kDriverFiles + kDriverFilesPerWorker * workers
                                      : kWorkerFiles + kWorkerFilesPerOther * workers) +
                              kFilesPerWorkerHere * exam.workers;
  const std::int64_t limit = exam.facts->open_files;
  const std::string what = fmt::format("{} may be open, {} of {} needs {}",
                                       limit < 0 ? "any number" : std::to_string(limit),
                                       drives ? "a driver" : "a worker",
                                       count_text(workers, "worker"),
                                       needed);
  if (limit < 0 || limit >= needed) {
    return {Level::Ok, what};
  }
  return {Level::Problem,
          what,
          "raise the hard limit: ulimit -Hn, LimitNOFILE= of a systemd unit, or nofile in "
          "/etc/security/limits.conf; programs raise the soft one themselves"};
}

std::string gpu_text(const GpuFacts& gpu) {
  return fmt::format(
      "{} visible{}, driver {}, NCCL {}",
      count_text(gpu.visible, "GPU"),
      gpu.memory > 0.0 ? fmt::format(", each with {} or more", bytes_text(gpu.memory)) : "",
      gpu.driver > 0 ? fmt::format("for CUDA {}", cuda_version(gpu.driver)) : "none",
      gpu.nccl.empty() ? "not found" : gpu.nccl);
}

std::string runtime_text(const GpuFacts& gpu) {
  return gpu.runtime > 0 ? fmt::format("LibTorch's CUDA {}", cuda_version(gpu.runtime))
                         : "LibTorch has no CUDA";
}

Verdict gpu_of(const GpuFacts& gpu) {
  std::string seen = fmt::format("{}, {}", runtime_text(gpu), gpu_text(gpu));
  if (!gpu.visible_says.empty()) {
    seen += fmt::format(", CUDA_VISIBLE_DEVICES \"{}\"", gpu.visible_says);
  }
  if (gpu.missing.empty()) {
    return {Level::Ok, seen};
  }
  return {gpu.driver == 0 ? Level::Note : Level::Problem,
          fmt::format("ranks compute on processors: {} ({})", gpu.missing, seen),
          gpu.remedy};
}

Verdict address_of(const HostExam& exam) {
  if (exam.no_door.empty()) {
    return {Level::Ok, exam.door.address};
  }
  return {
      Level::Problem,
      exam.no_door,
      exam.name == kHere
          ? "name the interface at which workers reach this machine: --interface, here and for "
            "launch"
          : "name one of that host's own interfaces or addresses in addr= of its line, and make "
            "sure that it reaches this machine"};
}

}  // namespace

std::vector<Finding> check_machine(const HostExam& exam, int cluster_workers) {
  std::vector<Finding> findings;
  const auto add = [&](const char* check, Verdict verdict) {
    findings.push_back(
        {exam.name, check, verdict.level, std::move(verdict.what), std::move(verdict.remedy)});
  };
  if (!exam.silence.empty()) {
    add("ssh", silence_of(exam));
  }
  if (!exam.facts) {
    return findings;
  }
  add("build", build_of(exam));
  add("processor", processor_of(*exam.facts));
  add("memory", memory_of(*exam.facts, exam.workers));
  add("shared memory", memfd_of(*exam.facts));
  add("locked memory", locked_of(*exam.facts));
  add("open files", files_of(exam, cluster_workers));
  add("gpu", gpu_of(exam.facts->gpu));
  if (!exam.no_door.empty() || exam.door.port != 0) {
    add("address", address_of(exam));
  }
  return findings;
}

}  // namespace stagecraft::tools
