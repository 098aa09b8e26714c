#include "stagecraft/actors/launch/ways/child_process.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
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
              fmt::format("the system has no {} left for a worker process ({}): use fewer ranks, "
                          "or raise the limits of processes and open files (ulimit -u, ulimit -n)",
                          what,
                          std::strerror(number)));
}

/// The child's descriptors and attributes at its start (CD-1).
class SpawnSettings {
 public:
  /// `output`: -1 for this process's output.
  SpawnSettings(int lifeline, int output) {
    posix_spawn_file_actions_init(&files_);
    posix_spawn_file_actions_adddup2(&files_, lifeline, kLifeline);
    if (output >= 0) {
      posix_spawn_file_actions_adddup2(&files_, output, STDOUT_FILENO);
      posix_spawn_file_actions_adddup2(&files_, output, STDERR_FILENO);
    }
    posix_spawn_file_actions_addclosefrom_np(&files_, STDERR_FILENO + 1);
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

class OwnDescriptor {
 public:
  OwnDescriptor() = default;
  explicit OwnDescriptor(int number) : number_(number) {}
  ~OwnDescriptor() { close(); }
  OwnDescriptor(OwnDescriptor&& other) noexcept : number_(other.release()) {}
  OwnDescriptor& operator=(OwnDescriptor&& other) noexcept {
    close();
    number_ = other.release();
    return *this;
  }
  OwnDescriptor(const OwnDescriptor&) = delete;
  OwnDescriptor& operator=(const OwnDescriptor&) = delete;

  [[nodiscard]] int get() const { return number_; }
  int release() { return std::exchange(number_, -1); }
  void close() {
    if (number_ >= 0) {
      ::close(release());
    }
  }

 private:
  int number_ = -1;
};

struct Ends {
  OwnDescriptor ours, theirs;
};

/// Makes a socket: writing to a pipe without a reader would raise a signal.
Ends make_lifeline() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw_lack("socket", errno);
  }
  return {OwnDescriptor(ends[0]), OwnDescriptor(ends[1])};
}

Ends make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw_lack("pipe", errno);
  }
  return {OwnDescriptor(ends[0]), OwnDescriptor(ends[1])};
}

/// Reads lines until the last writer has gone.
void read_lines(int from, const std::function<void(std::string_view)>& on_line) {
  const OwnDescriptor end(from);
  std::string text;
  std::array<char, 4096> part{};
  while (true) {
    const auto got = read(from, part.data(), part.size());
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      break;
    }
    text.append(part.data(), static_cast<std::size_t>(got));
    std::size_t begin = 0;
    for (std::size_t line_end = 0; (line_end = text.find('\n', begin)) != std::string::npos;
         begin = line_end + 1) {
      on_line(std::string_view(text).substr(begin, line_end - begin));
    }
    text.erase(0, begin);
  }
  if (!text.empty()) {
    on_line(text);
  }
}

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

/// Reports the end before it reaps the child: until then no other process has its id.
void ChildProcess::wait_for(pid_t id,
                            const std::shared_ptr<Fate>& fate,
                            const std::function<void(const std::string&)>& on_end) {
  siginfo_t info{};
  const auto who = static_cast<id_t>(id);
  int got = 0;
  do {
    got = waitid(P_PID, who, &info, WEXITED | WNOWAIT);
  } while (got != 0 && errno == EINTR);
  const std::string how =
      got == 0 ? text_of(info) : "has ended, and another part of this program has taken its status";
  fate->set(how);
  static_cast<void>(waitid(P_PID, who, &info, WEXITED | WNOHANG));
  on_end(how);
}

ChildProcess::ChildProcess(const ChildProgram& program,
                           std::function<void(const std::string&)> on_end)
    : fate_(std::make_shared<Fate>()) {
  Ends lifeline = make_lifeline();
  Ends output = program.on_line ? make_pipe() : Ends{};
  std::vector<char*> words{const_cast<char*>(program.path.c_str())};
  for (const std::string& argument : program.arguments) {
    words.push_back(const_cast<char*>(argument.c_str()));
  }
  words.push_back(nullptr);
  int fault = 0;
  {
    const SpawnSettings settings(lifeline.theirs.get(), output.theirs.get());
    fault = posix_spawnp(
        &id_, program.path.c_str(), settings.files(), settings.attributes(), words.data(), environ);
  }
  lifeline.theirs.close();
  output.theirs.close();
  if (fault == EAGAIN || fault == ENOMEM) {
    throw_lack("process", fault);
  }
  if (fault != 0) {
    throw Error(
        Errc::UsageFile,
        fmt::format("{} cannot be run as a worker: {}", program.path, std::strerror(fault)));
  }
  lifeline_ = lifeline.ours.release();
  say(program.input);
  try {
    if (program.on_line) {
      std::thread(read_lines, output.ours.release(), program.on_line).detach();
    }
    std::thread(wait_for, id_, fate_, std::move(on_end)).detach();
  } catch (const std::system_error& error) {
    ::kill(id_, SIGKILL);
    waitpid(id_, nullptr, 0);
    close(lifeline_);
    throw_lack("thread", error.code().value());
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

std::optional<std::string> ChildProcess::end() const {
  const std::scoped_lock lock(fate_->mutex);
  return fate_->text;
}

void ChildProcess::kill() const {
  const std::scoped_lock lock(fate_->mutex);
  if (!fate_->text) {  // otherwise the id may belong to another process
    ::kill(id_, SIGKILL);
  }
}

/// A child that has ended does not read. Ignore that: its end is reported anyway.
void ChildProcess::say(std::string_view text) const {
  static_cast<void>(send(lifeline_, text.data(), text.size(), MSG_NOSIGNAL));
}

}  // namespace stagecraft
