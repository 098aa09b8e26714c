#include "stagecraft/tools/train/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace stagecraft::tools {
namespace {

constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};

// What a signal handler can reach: it runs on any thread, at any time.
// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<int> received_signal{0};
std::atomic<const std::string*> words{nullptr};
std::atomic<bool> hangup_is_ours{false};
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

/// Calls nothing that POSIX does not allow a handler.
extern "C" void note_signal(int signal) {
  const int error = errno;
  received_signal.store(signal);
  for (const int each : kSignals) {
    if (each != SIGHUP || hangup_is_ours.load()) {
      std::signal(each, SIG_DFL);
    }
  }
  if (const std::string* text = words.load(); text != nullptr) {
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text->data(), text->size());
  }
  errno = error;
}

}  // namespace

Interrupt::Interrupt(bool saves, const std::string& begin)
    : words_{fmt::format(
                 "{}stagecraft: finishing this step{}\n",
                 begin,
                 saves ? ", then saving; again to stop without saving" : "; again to stop at once"),
             fmt::format("{}stagecraft: saving; again to stop without saving\n", begin),
             fmt::format("{}stagecraft: ending; again to stop at once\n", begin)} {
  received_signal.store(0);
  enter(Phase::Steps);
  struct sigaction action {};
  action.sa_handler = note_signal;
  // Restart: the workers' waits are not to fail because the user pressed a key.
  action.sa_flags = SA_RESTART;
  for (const int signal : kSignals) {
    sigaddset(&action.sa_mask, signal);  // one after the other, so that the second finds no handler
  }
  struct sigaction hangup {};
  sigaction(SIGHUP, nullptr, &hangup);
  hangup_is_ours.store(hangup.sa_handler != SIG_IGN);  // keeps I-2
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    if (kSignals[i] != SIGHUP || hangup_is_ours.load()) {
      sigaction(kSignals[i], &action, &before_[i]);
    }
  }
}

Interrupt::~Interrupt() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    if (kSignals[i] != SIGHUP || hangup_is_ours.load()) {
      sigaction(kSignals[i], &before_[i], nullptr);
    }
  }
  words.store(nullptr);
}

void Interrupt::enter(Phase phase) {
  words.store(&words_[static_cast<std::size_t>(phase)]);
}

int Interrupt::received() const {
  return received_signal.load();
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name);
}

}  // namespace stagecraft::tools
