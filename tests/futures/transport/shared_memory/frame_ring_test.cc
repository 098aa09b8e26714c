#include "stagecraft/futures/transport/shared_memory/frame_ring.h"

#include <cstring>
#include <deque>
#include <random>
#include <semaphore>
#include <thread>
#include <utility>
#include <vector>

#include "stagecraft/base/error.h"
#include "stagecraft/futures/transport/shared_memory/memory_file.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Both sides of a ring, each in a mapping of its own.
struct TwoEnds {
  MemoryFile written = MemoryFile::make(MemoryFile::kPage);
  MemoryFile read{Descriptor(dup(written.descriptor().number()))};
  RingWriter writer{written.ring()};
  RingReader reader{read.ring()};

  /// Returns the number at this place of the ring's state, as the writer has it.
  [[nodiscard]] std::uint64_t& number_at(std::size_t byte) const {
    return *reinterpret_cast<std::uint64_t*>(written.ring().data() + byte);
  }
};

constexpr std::size_t kWritten = 0, kRead = 64, kFirst = 192;

using Parts = std::pair<std::string, std::string>;

std::string text_of(std::mt19937& random, std::size_t most) {
  std::string text(random() % (most + 1), ' ');
  for (char& c : text) {
    c = static_cast<char>(random());
  }
  return text;
}

TEST_CASE("a ring gives messages back in order, also around its end", "[futures][shared_memory]") {
  TwoEnds ends;
  std::mt19937 random(1);
  std::deque<Parts> written;
  std::size_t bytes = 0, refused = 0;
  while (bytes < 8U * MemoryFile::kRingBytes) {
    const Parts parts{text_of(random, 300), text_of(random, 16'000)};
    if (random() % 3 > 0 && ends.writer.write({parts.first, parts.second})) {
      written.push_back(parts);
      bytes += parts.first.size() + parts.second.size();
      continue;
    }
    refused += written.size() > 8 ? 1 : 0;
    const auto message = ends.reader.next();
    REQUIRE(message.has_value() == !written.empty());
    if (message) {
      REQUIRE(Parts(message->header, message->bytes) == written.front());
      const auto again = ends.reader.next();  // until pop()
      REQUIRE(Parts(again->header, again->bytes) == written.front());
      ends.reader.pop();
      written.pop_front();
    }
  }
  CHECK(refused > 0);
}

TEST_CASE("a ring takes what has room, whole or not at all (RG-1)", "[futures][shared_memory]") {
  TwoEnds ends;
  const std::string all(MemoryFile::kRingBytes - kFirst - 8, 'a');
  CHECK_FALSE(ends.writer.write({all, "b"}));
  CHECK_FALSE(ends.reader.next());
  CHECK(ends.writer.write({all, ""}));
  CHECK_FALSE(ends.writer.write({"", ""}));
  CHECK(ends.reader.next()->header == all);
  ends.reader.pop();
  CHECK(ends.writer.write({"", ""}));
  CHECK(ends.reader.next()->header.empty());
}

TEST_CASE("a reader refuses what no writer would have written (RG-2)", "[futures][shared_memory]") {
  TwoEnds ends;
  REQUIRE(ends.writer.write({"header", "bytes"}));
  SECTION("more than there is room for") {
    ends.number_at(kWritten) = MemoryFile::kRingBytes;
  }
  SECTION("less than was read") {
    REQUIRE(ends.reader.next());
    ends.reader.pop();
    ends.number_at(kWritten) = 8;
  }
  SECTION("a part of a message") {
    ends.number_at(kWritten) = 4;
  }
  SECTION("sizes beyond the end") {
    ends.number_at(kFirst) = std::uint64_t{100} << 32U;
  }
  SECTION("sizes beyond all memory") {
    ends.number_at(kFirst) = ~std::uint64_t{0};
  }
  CHECK_THROWS_WITH(ends.reader.next(), ContainsSubstring("cannot be among"));
}

TEST_CASE("a writer does not believe a reader that has read too much", "[futures][shared_memory]") {
  const TwoEnds ends;
  RingWriter writer(ends.written.ring());
  REQUIRE(writer.write({"header", "bytes"}));
  ends.number_at(kRead) = 1000;
  CHECK_FALSE(writer.write({"header", "bytes"}));
}

TEST_CASE("a reader that falls asleep is found once, and never misses a message (RG-3)",
          "[futures][shared_memory]") {
  TwoEnds ends;
  CHECK(ends.reader.fall_asleep());
  REQUIRE(ends.writer.write({"a", ""}));
  CHECK(ends.writer.finds_sleeper());
  CHECK_FALSE(ends.writer.finds_sleeper());
  CHECK_FALSE(ends.reader.fall_asleep());
  CHECK_FALSE(ends.writer.finds_sleeper());
  CHECK(ends.reader.next());  // it may stay there
  CHECK(ends.reader.fall_asleep());
  ends.reader.wake_up();
  CHECK_FALSE(ends.writer.finds_sleeper());
}

TEST_CASE("two threads pass messages through a ring, and the reader sleeps between them (RG-3)",
          "[futures][shared_memory]") {
  constexpr std::uint32_t kMessages = 50'000;
  TwoEnds ends;
  std::counting_semaphore<> bell(0);
  std::thread writing([&] {
    std::mt19937 random(5);
    for (std::uint32_t i = 0; i < kMessages;) {
      const std::string header(reinterpret_cast<const char*>(&i), sizeof i);
      if (!ends.writer.write({header, std::string(random() % 2000, static_cast<char>(i))})) {
        std::this_thread::yield();
        continue;
      }
      ++i;
      if (ends.writer.finds_sleeper()) {
        bell.release();
      }
    }
  });
  std::uint32_t expected = 0;
  bool is_whole = true;
  while (expected < kMessages) {
    while (const auto message = ends.reader.next()) {
      std::uint32_t number = 0;
      std::memcpy(&number, message->header.data(), sizeof number);
      is_whole = is_whole && number == expected &&
                 message->bytes.find_first_not_of(static_cast<char>(number)) == std::string::npos;
      ++expected;
      ends.reader.pop();
    }
    if (expected < kMessages && ends.reader.fall_asleep()) {
      bell.acquire();  // without RG-3 it would wait for ever
    }
  }
  writing.join();
  CHECK(is_whole);
}

}  // namespace
}  // namespace stagecraft
