#include "stagecraft/tools/common/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <string_view>

#include <fmt/format.h>

namespace stagecraft::tools {
namespace {

constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};

/// Messages by whether something will be saved, then by phase. Static: a handler on another thread
/// may read them after the Interrupt has gone.
constexpr std::array<std::array<std::string_view, 3>, 2> kWords{
    {{"\nstagecraft: finishing this step; again after 1 s to stop at once\n",
      "\nstagecraft: saving; again after 1 s to stop without saving\n",
      "\nstagecraft: ending; again after 1 s to stop at once\n"},
     {"\nstagecraft: finishing this step, then saving; again after 1 s to stop without saving\n",
      "\nstagecraft: saving; again after 1 s to stop without saving\n",
      "\nstagecraft: ending; again after 1 s to stop at once\n"}}};

constexpr std::int64_t kNever = -1;

// The state of the signal handler, which runs on any thread, at any time.
// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<int> received_signal{0};
std::atomic<std::int64_t> first_at{kNever};  ///< nanoseconds of the clock
std::atomic<Interrupt::Clock> now{nullptr};
std::atomic<const std::string_view*> words{nullptr};
std::atomic<bool> words_in_line{false};
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

void say_what_comes() {
  if (const std::string_view* text = words.load(); text != nullptr) {
    const std::string_view said = text->substr(words_in_line.load() ? 0 : 1);
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, said.data(), said.size());
  }
}

/// Calls nothing that POSIX forbids in a handler.
extern "C" void note_signal(int signal) {
  const int error = errno;
  const std::int64_t at = now.load()().count();
  std::int64_t first = kNever;
  // Two threads may be here at once: the compare-exchange decides which one is first.
  if (first_at.compare_exchange_strong(first, at)) {
    received_signal.store(signal);
    say_what_comes();
  } else if (signal != SIGHUP && at - first > Interrupt::kRepeats.count()) {  // keeps I-3
    std::signal(signal, SIG_DFL);
    std::raise(signal);  // delivered when this handler returns
  }
  errno = error;
}

bool is_ignored(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

Interrupt::Interrupt(bool saves, bool in_line, Clock clock) : saves_(saves) {
  received_signal.store(0);
  first_at.store(kNever);
  now.store(clock);
  words_in_line.store(in_line);
  enter(Phase::Steps);
  struct sigaction action {};
  action.sa_handler = note_signal;
  // Restart: the workers' waits must not fail because the user pressed a key.
  action.sa_flags = SA_RESTART;
  for (const int signal : kSignals) {
    sigaddset(&action.sa_mask, signal);
  }
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    if (!is_ignored(before_[i])) {  // keeps I-2
      sigaction(kSignals[i], &action, nullptr);
    }
  }
}

Interrupt::~Interrupt() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    if (!is_ignored(before_[i])) {
      sigaction(kSignals[i], &before_[i], nullptr);
    }
  }
  words.store(nullptr);
}

void Interrupt::enter(Phase phase) {
  words.store(&kWords[saves_ ? 1 : 0][static_cast<std::size_t>(phase)]);
}

int Interrupt::received() const {
  return received_signal.load();
}

std::chrono::nanoseconds Interrupt::monotonic() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name);
}

}  // namespace stagecraft::tools
