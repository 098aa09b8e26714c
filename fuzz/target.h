/// The entry point of every fuzz target. libFuzzer calls it with one input, replay.cc with each
/// file of a corpus.
#pragma once

#include <cstddef>
#include <cstdint>

/// Returns 0; a fault ends the program.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
