/// limits defines how long the doctor waits for each answer, and the bounds by which it judges.
#pragma once

#include <chrono>
#include <cstdint>

namespace stagecraft::tools {

// ssh gives up after 10 s (ssh_worker); the rest is for starting the program there.
inline constexpr std::chrono::seconds kFactsPatience{40};
inline constexpr std::chrono::seconds kTimePatience{10};
inline constexpr std::chrono::seconds kWayPatience{5};
inline constexpr std::chrono::seconds kNamePatience{5};
inline constexpr std::chrono::seconds kStepPatience{20};  // for the other processes of a step
inline constexpr std::chrono::seconds kWaysPatience{20};  // for both sides, and there and back
/// The longest talk. It covers all of the above; a helper without further questions ends then.
inline constexpr std::chrono::seconds kLongestTalk{120};

/// The difference of clocks that is a problem. Certificates begin five minutes early
/// (CredentialsRequest); beyond that clocks refuse new ones.
inline constexpr double kClockProblem = 300;
/// The difference of clocks that is worth a note. Beyond it, lines of several hosts' logs and
/// traces are out of order.
inline constexpr double kClockNote = 1;

/// The descriptors that docs/security.md counts, and those that a control port keeps free.
inline constexpr std::int64_t kDriverFiles = 17;
inline constexpr std::int64_t kDriverFilesPerWorker = 6;
inline constexpr std::int64_t kWorkerFiles = 19;
inline constexpr std::int64_t kWorkerFilesPerOther = 3;
inline constexpr std::int64_t kFilesPerWorkerHere = 4;  ///< memory shared each way
inline constexpr std::int64_t kSpareFiles = 64;

/// The resident memory of a worker that holds nothing yet: 130 MiB, half of it code of LibTorch
/// (2.11.0).
inline constexpr double kWorkerBytes = 128.0 * 1024 * 1024;

}  // namespace stagecraft::tools
