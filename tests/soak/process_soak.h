/// ProcessSoak causes faults of worker processes of this host: they are killed, stopped, starved,
/// or get garbage; copies that share or divide what they hold, and actors beside the training, lose
/// one of them.
#pragma once

#include <array>
#include <memory>

#include "stagecraft/tests/soak/fault.h"

namespace stagecraft::tests {

inline constexpr int kSoakRanks = 4;
inline constexpr std::array<const char*, 11> kProcessFaults{"kill",
                                                            "copy",
                                                            "shares",
                                                            "save",
                                                            "several",
                                                            "stop",
                                                            "exception",
                                                            "memory",
                                                            "garbage",
                                                            "actors",
                                                            "driver"};

[[nodiscard]] std::unique_ptr<Soak> make_process_soak(const SoakOptions& options);

}  // namespace stagecraft::tests
