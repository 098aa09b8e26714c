#include "stagecraft/actors/launch/child_process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <spawn.h>

#include "stagecraft/base/error.h"

extern char** environ;  // NOLINT(readability-redundant-declaration)

namespace stagecraft {
namespace {

[[noreturn]] void throw_lack(const std::string& what, int number) {
  throw Error(Errc::DeviceOutOfMemory,
              fmt::format("{} cannot be had for a worker process ({}): use fewer ranks, or raise "
                          "what limits processes and open files (ulimit -u, ulimit -n)",
                          what,
                          std::strerror(number)));
}

/// What the child starts with (CD-1).
class SpawnSettings {
 public:
  explicit SpawnSettings(int lifeline) {
    posix_spawn_file_actions_init(&files_);
    posix_spawn_file_actions_addopen(&files_, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files_, lifeline, kLifeline);
    posix_spawn_file_actions_addclosefrom_np(&files_, kLifeline + 1);
    posix_spawnattr_init(&attributes_);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  [[nodiscard]] const posix_spawn_file_actions_t* files() const { return &files_; }
  [[nodiscard]] const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t files_{};
  posix_spawnattr_t attributes_{};
};

std::string text_of(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) {
    return fmt::format("ended with exit status {}", info.si_status);
  }
  return fmt::format("was killed by signal {} ({})", info.si_status, strsignal(info.si_status));
}

}  // namespace

struct ChildProcess::Fate {
  std::mutex mutex;
  std::condition_variable known;
  std::optional<std::string> text;

  void set(std::string how) {
    {
      const std::scoped_lock lock(mutex);
      text = std::move(how);
    }
    known.notify_all();
  }
};

ChildProcess::ChildProcess(const std::string& program,
                           const std::vector<std::string>& arguments,
                           std::function<void()> on_end)
    : fate_(std::make_shared<Fate>()) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw_lack("a pipe", errno);
  }
  std::vector<char*> words{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) {
    words.push_back(const_cast<char*>(argument.c_str()));
  }
  words.push_back(nullptr);
  int fault = 0;
  {
    const SpawnSettings settings(ends[0]);
    fault = posix_spawn(
        &id_, program.c_str(), settings.files(), settings.attributes(), words.data(), environ);
  }
  close(ends[0]);
  lifeline_ = ends[1];
  if (fault != 0) {
    close(lifeline_);
    if (fault == EAGAIN || fault == ENOMEM) {
      throw_lack("a process", fault);
    }
    throw Error(Errc::UsageFile,
                fmt::format("{} cannot be run as a worker: {}", program, std::strerror(fault)));
  }
  try {
    std::thread([id = id_, fate = fate_, on_end = std::move(on_end)] {
      // Told before it is taken: until then nobody else has its number.
      siginfo_t info{};
      const auto who = static_cast<id_t>(id);
      int got = 0;
      do {
        got = waitid(P_PID, who, &info, WEXITED | WNOWAIT);
      } while (got != 0 && errno == EINTR);
      fate->set(got == 0 ? text_of(info)
                         : "has ended, and another part of this program has taken its status");
      static_cast<void>(waitid(P_PID, who, &info, WEXITED | WNOHANG));
      on_end();
    }).detach();
  } catch (const std::system_error& error) {
    ::kill(id_, SIGKILL);
    waitpid(id_, nullptr, 0);
    close(lifeline_);
    throw_lack("a thread", error.code().value());
  }
}

ChildProcess::~ChildProcess() {
  if (!home_.is_here()) {
    return;
  }
  kill();
  close(lifeline_);
  std::unique_lock lock(fate_->mutex);
  fate_->known.wait(lock, [this] { return fate_->text.has_value(); });
}

std::optional<std::string> ChildProcess::end(std::chrono::milliseconds patience) const {
  std::unique_lock lock(fate_->mutex);
  fate_->known.wait_for(lock, patience, [this] { return fate_->text.has_value(); });
  return fate_->text;
}

void ChildProcess::kill() const {
  const std::scoped_lock lock(fate_->mutex);
  if (!fate_->text) {  // else its number may be another's by now
    ::kill(id_, SIGKILL);
  }
}

}  // namespace stagecraft
