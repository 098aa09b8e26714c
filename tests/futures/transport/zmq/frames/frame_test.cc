#include "stagecraft/futures/transport/zmq/frames/frame.h"

#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

FrameHeader header_of(std::vector<std::int64_t> sizes, std::int64_t total) {
  FrameHeader header;
  header.link = 3;
  header.sequence = std::numeric_limits<std::uint64_t>::max();
  header.transfer = 8;
  header.network = NetworkId{std::numeric_limits<std::uint64_t>::max()};
  header.from = kDriver;
  header.to = Rank{4};
  header.tag = {.plan = PlanId{5},
                .epoch = kEndlessEpoch,
                .submission = Submission{-7},
                .edge = EdgeId{-8},
                .microbatch = Microbatch{9}};
  header.sizes = std::move(sizes);
  header.total = total;
  header.chunk = total;
  return header;
}

TEST_CASE("a header decodes to what was encoded", "[futures][frame]") {
  CHECK(decode_frame(encode_frame(header_of({2, 3}, 24))) == header_of({2, 3}, 24));
  CHECK(decode_frame(encode_frame(header_of({}, 4))) == header_of({}, 4));
  CHECK(decode_frame(encode_frame(header_of({0, 3}, 0))) == header_of({0, 3}, 0));
  FrameHeader longest = header_of(std::vector<std::int64_t>(kMostDimensions, 1), 4);
  CHECK(decode_frame(encode_frame(longest)) == longest);
  longest.sizes.assign(kMostDimensions, 0);
  longest.total = longest.chunk = 0;
  longest.dtype = at::kComplexDouble;
  CHECK(decode_frame(encode_frame(longest)).dtype == at::kComplexDouble);
}

TEST_CASE("a header that contradicts itself is refused before memory is allocated (FR-1)",
          "[futures][frame]") {
  struct Wrong {
    std::string says;
    std::function<void(FrameHeader&)> change;
  };
  const std::vector<Wrong> all{
      {"one of its sizes is -1", [](FrameHeader& h) { h.sizes[0] = -1; }},
      {"its sizes make 24 bytes, but it says 25", [](FrameHeader& h) { h.total = 25; }},
      {"its sizes make 24 bytes, but it says -24", [](FrameHeader& h) { h.total = -24; }},
      {"larger than memory can be",
       [](FrameHeader& h) {
         h.sizes = {kMost, kMost};
       }},
      {"larger than memory can be", [](FrameHeader& h) { h.sizes = {kMost}; }},
      {"larger than memory can be",
       [](FrameHeader& h) {
         h.sizes = {0, kMost, kMost};
         h.total = h.chunk = 0;
       }},
      {"its sizes make 0 bytes, but it says 24",
       [](FrameHeader& h) {
         h.sizes = {2, 0, 3};
       }},
      {"larger than memory can be", [](FrameHeader& h) { h.sizes.assign(kMostDimensions, 2); }},
      {"not msgpack: array size overflow",
       [](FrameHeader& h) { h.sizes.assign(kMostDimensions + 1, 1); }},
      {"not a chunk of a tensor of 24 bytes", [](FrameHeader& h) { h.offset = 1; }},
      {"not a chunk of a tensor of 24 bytes", [](FrameHeader& h) { h.offset = -1; }},
      {"not a chunk of a tensor of 24 bytes", [](FrameHeader& h) { h.offset = kMost; }},
      {"not a chunk of a tensor of 24 bytes", [](FrameHeader& h) { h.chunk = -1; }},
      {"not a chunk of a tensor of 24 bytes", [](FrameHeader& h) { h.chunk = 0; }},
      {"not a chunk of a tensor of 24 bytes", [](FrameHeader& h) { h.chunk = kMost; }},
      {"not a chunk of", [](FrameHeader& h) {
         h.sizes = {kLargestChunk};
         h.total = h.chunk = 4 * kLargestChunk;
       }}};
  for (const Wrong& wrong : all) {
    FrameHeader header = header_of({2, 3}, 24);
    wrong.change(header);
    INFO(wrong.says);
    CHECK_THROWS_WITH(decode_frame(encode_frame(header)), ContainsSubstring(wrong.says));
  }
}

TEST_CASE("bytes that are not a header are refused, whatever they are", "[futures][frame]") {
  const std::string good = encode_frame(header_of({2, 3}, 24));
  for (std::size_t size = 0; size < good.size(); ++size) {
    CHECK(thrown_by([&] { static_cast<void>(decode_frame(good.substr(0, size))); }) ==
          Errc::TransportRefused);
  }
  // A byte replaced by any other is refused or read, and the header that is read is consistent.
  int refused = 0;
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string changed = good;
      changed[at] = static_cast<char>(byte);
      try {
        const FrameHeader read = decode_frame(changed);
        refused += decode_frame(encode_frame(read)) == read ? 0 : 1000000;
      } catch (const Error& error) {
        refused += error.code() == Errc::TransportRefused ? 1 : 1000000;
      }
    }
  }
  CHECK(refused > 0);
  CHECK(refused < 1000000);

  const auto says = [](const std::string& bytes, const std::string& what) {
    CHECK_THROWS_WITH(decode_frame(bytes), ContainsSubstring(what));
  };
  says("", "not msgpack");
  says(std::string(kLongestHeader + 1, '\x90'), "expected at most 1024");
  says("GET / HTTP/1.1\r\n\r\n", "bytes follow its header");
  says(good + "x", "1 bytes follow its header");
  says("\x90", "not a list");
  says("\x91\x02", "it has version 2, but this process speaks version 1");
  says("\x92\x01\x01", "it has 2 fields, expected 17");
  says(std::string("\xdd\xff\xff\xff\xff", 5), "not msgpack");  // a list of 2^32 - 1
  says(std::string("\xc6\xff\xff\xff\xff", 5), "not msgpack");  // 4 GiB of bytes
  says(std::string(600, '\x91'), "not msgpack");                // lists in lists
  std::string other_type = good;
  other_type.replace(other_type.find("Float"), 5, "Flood");
  says(other_type, "a name of 5 characters, is unknown");
}

TEST_CASE("all types but the quantized can be sent", "[futures][frame]") {
  CHECK(has_frames(at::kBool));
  CHECK(has_frames(at::kComplexHalf));
  CHECK_FALSE(has_frames(at::kQInt8));
  CHECK_FALSE(has_frames(at::ScalarType::Undefined));
}

}  // namespace
}  // namespace stagecraft
