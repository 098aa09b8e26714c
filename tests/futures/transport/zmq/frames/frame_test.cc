#include "stagecraft/futures/transport/zmq/frames/frame.h"

#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>

#include "stagecraft/base/error.h"
#include "stagecraft/futures/transport/zmq/frames/outbox.h"
#include "stagecraft/futures/transport/zmq/frames/reassembly.h"
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

TEST_CASE("a header is read as it was written", "[futures][frame]") {
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

TEST_CASE("a header that does not agree with itself is refused before memory is taken (FR-1)",
          "[futures][frame]") {
  struct Wrong {
    std::string says;
    std::function<void(FrameHeader&)> change;
  };
  const std::vector<Wrong> all{
      {"a size is -1", [](FrameHeader& h) { h.sizes[0] = -1; }},
      {"its sizes make 24 bytes, and it says 25", [](FrameHeader& h) { h.total = 25; }},
      {"its sizes make 24 bytes, and it says -24", [](FrameHeader& h) { h.total = -24; }},
      {"more than can be addressed",
       [](FrameHeader& h) {
         h.sizes = {kMost, kMost};
       }},
      {"more than can be addressed", [](FrameHeader& h) { h.sizes = {kMost}; }},
      {"more than can be addressed",
       [](FrameHeader& h) {
         h.sizes = {0, kMost, kMost};
         h.total = h.chunk = 0;
       }},
      {"its sizes make 0 bytes, and it says 24",
       [](FrameHeader& h) {
         h.sizes = {2, 0, 3};
       }},
      {"more than can be addressed", [](FrameHeader& h) { h.sizes.assign(kMostDimensions, 2); }},
      {"no msgpack: array size overflow",
       [](FrameHeader& h) { h.sizes.assign(kMostDimensions + 1, 1); }},
      {"no chunk of 24 bytes", [](FrameHeader& h) { h.offset = 1; }},
      {"no chunk of 24 bytes", [](FrameHeader& h) { h.offset = -1; }},
      {"no chunk of 24 bytes", [](FrameHeader& h) { h.offset = kMost; }},
      {"no chunk of 24 bytes", [](FrameHeader& h) { h.chunk = -1; }},
      {"no chunk of 24 bytes", [](FrameHeader& h) { h.chunk = 0; }},
      {"no chunk of 24 bytes", [](FrameHeader& h) { h.chunk = kMost; }},
      {"no chunk of", [](FrameHeader& h) {
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

TEST_CASE("bytes that are no header are refused, whatever they are", "[futures][frame]") {
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
  says("", "no msgpack");
  says(std::string(kLongestHeader + 1, '\x90'), "1024 is the most");
  says("GET / HTTP/1.1\r\n\r\n", "bytes follow its header");
  says(good + "x", "1 bytes follow its header");
  says("\x90", "no list");
  says("\x91\x02", "it is of version 2, and this end speaks 1");
  says("\x92\x01\x01", "it has 2 fields, not 17");
  says(std::string("\xdd\xff\xff\xff\xff", 5), "no msgpack");  // a list of 2^32 - 1
  says(std::string("\xc6\xff\xff\xff\xff", 5), "no msgpack");  // 4 GiB of bytes
  says(std::string(600, '\x91'), "no msgpack");                // lists in lists
  std::string other_type = good;
  other_type.replace(other_type.find("Float"), 5, "Flood");
  says(other_type, "nothing is known of a dtype");
}

TEST_CASE("which types can be sent", "[futures][frame]") {
  CHECK(has_frames(at::kBool));
  CHECK(has_frames(at::kComplexHalf));
  CHECK_FALSE(has_frames(at::kQInt8));
  CHECK_FALSE(has_frames(at::ScalarType::Undefined));
}

Outgoing outgoing(std::int64_t bytes, int edge, std::int64_t first = 0) {
  return {.network = NetworkId{1},
          .from = Rank{0},
          .to = Rank{1},
          .tag = {.edge = EdgeId{edge}},
          .tensor = at::arange(first, first + bytes, at::kLong).to(at::kByte)};
}

/// Returns the edges of the frames that leave an outbox, in order.
std::vector<int> order_of(Outbox& outbox) {
  std::vector<int> edges;
  while (!outbox.empty()) {
    edges.push_back(outbox.next().first.tag.edge.value);
    outbox.sent();
  }
  return edges;
}

TEST_CASE("small tensors pass large ones, and those take turns", "[futures][outbox]") {
  Outbox outbox(10);
  outbox.push(outgoing(30, 1));
  outbox.push(outgoing(25, 2));
  outbox.push(outgoing(4, 3));
  outbox.push(outgoing(10, 4));
  CHECK(outbox.tensors() == 4);
  CHECK(order_of(outbox) == std::vector<int>{3, 4, 1, 2, 1, 2, 1, 2});
  CHECK(outbox.tensors() == 0);
}

TEST_CASE("a stream of small tensors leaves room for a large one", "[futures][outbox]") {
  Outbox outbox(10);
  outbox.push(outgoing(20, 1));
  for (int edge = 2; edge < 8; ++edge) {
    outbox.push(outgoing(5, edge));
  }
  CHECK(order_of(outbox) == std::vector<int>{2, 3, 1, 4, 5, 1, 6, 7});
}

TEST_CASE("of many large ones a few are under way at once", "[futures][outbox]") {
  Outbox outbox(10);
  for (int edge = 1; edge <= 6; ++edge) {
    outbox.push(outgoing(20, edge));
  }
  CHECK(order_of(outbox) == std::vector<int>{1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 5, 6});
}

TEST_CASE("of one tag a tensor is sent whole before the next begins (OB-1)", "[futures][outbox]") {
  Outbox outbox(10);
  outbox.push(outgoing(30, 1));
  outbox.push(outgoing(1, 1));
  outbox.push(outgoing(0, 1));
  outbox.push(outgoing(25, 1));
  outbox.push(outgoing(25, 2));
  std::vector<std::int64_t> totals;
  while (!outbox.empty()) {
    const FrameHeader header = outbox.next().first;
    if (header.tag.edge == EdgeId{1} && header.offset + header.chunk == header.total) {
      totals.push_back(header.total);
    }
    outbox.sent();
  }
  CHECK(totals == std::vector<std::int64_t>{30, 1, 0, 25});
}

/// Returns all frames that an outbox sends over one link.
std::vector<std::pair<FrameHeader, std::string>> frames_of(Outbox& outbox, std::uint64_t link = 1) {
  std::vector<std::pair<FrameHeader, std::string>> frames;
  while (!outbox.empty()) {
    auto [header, tensor] = outbox.next();
    header.link = link;
    header.sequence = frames.size();
    const char* const bytes = static_cast<const char*>(tensor.const_data_ptr());
    frames.emplace_back(header,
                        std::string(bytes + header.offset, static_cast<std::size_t>(header.chunk)));
    outbox.sent();
  }
  return frames;
}

TEST_CASE("interleaved tensors are put together again, each when it is whole (RS-2)",
          "[futures][reassembly]") {
  Outbox outbox(10);
  outbox.push(outgoing(30, 1));
  outbox.push(outgoing(25, 2, 100));
  outbox.push(outgoing(0, 3));
  Reassembly arriving(100);
  std::vector<int> edges;
  for (const auto& [header, bytes] : frames_of(outbox)) {
    const std::optional<at::Tensor> whole = arriving.take(header, bytes, /*wanted=*/true);
    if (whole) {
      edges.push_back(header.tag.edge.value);
      const std::int64_t first = header.tag.edge == EdgeId{2} ? 100 : 0;
      CHECK(at::equal(*whole, outgoing(header.total, 0, first).tensor));
      CHECK(reinterpret_cast<std::uintptr_t>(whole->const_data_ptr()) % 64 == 0);
    }
  }
  CHECK(edges == std::vector<int>{3, 1, 2});
  CHECK(arriving.bytes() == 0);
}

TEST_CASE("what nobody wants takes no memory, also when that turns out half-way",
          "[futures][reassembly]") {
  Outbox outbox(10);
  outbox.push(outgoing(30, 1));
  const auto frames = frames_of(outbox);
  Reassembly arriving(100);
  const std::size_t wanted = GENERATE(0U, 1U, 2U);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const auto whole = arriving.take(frames[i].first, frames[i].second, i < wanted);
    CHECK(arriving.bytes() == (i < wanted ? 30 : 0));
    CHECK(whole.has_value() == (i == 2));
    CHECK_FALSE((whole && whole->defined()));
  }
  Reassembly other(100);
  CHECK_FALSE(other.take(frames[0].first, frames[0].second, true));
  other.keep([](const FrameHeader&) { return true; });
  CHECK(other.bytes() == 30);
  other.keep([](const FrameHeader&) { return false; });
  CHECK(other.bytes() == 0);
}

TEST_CASE("after a frame that is lost or wrong nothing of its link is taken (RS-1)",
          "[futures][reassembly]") {
  Outbox outbox(10);
  outbox.push(outgoing(30, 1));
  outbox.push(outgoing(5, 1));
  auto frames = frames_of(outbox);
  Reassembly arriving(30);
  const auto take = [&](std::size_t i) {
    return arriving.take(frames[i].first, frames[i].second, true);
  };
  SECTION("lost") {
    CHECK_FALSE(take(0));
    CHECK_THROWS_WITH(take(2), ContainsSubstring("frame 2 of link 1 came where frame 1 was due"));
  }
  SECTION("the first lost") {
    CHECK_THROWS_WITH(take(1), ContainsSubstring("came where frame 0 was due"));
  }
  SECTION("twice") {
    CHECK_FALSE(take(0));
    CHECK(thrown_by([&] { static_cast<void>(take(0)); }) == Errc::TransportRefused);
  }
  SECTION("shorter than it says") {
    frames[0].second.pop_back();
    CHECK_THROWS_WITH(take(0), ContainsSubstring("a chunk of 10 bytes came as 9"));
  }
  SECTION("too large") {
    frames[0].first.sizes = {31};
    frames[0].first.total = 31;
    CHECK_THROWS_WITH(take(0), ContainsSubstring("raise largest_tensor"));
  }
  SECTION("without a beginning") {
    frames[0].first.offset = 10;
    CHECK_THROWS_WITH(take(0), ContainsSubstring("begins at its byte 10"));
  }
  SECTION("of another tag half-way") {
    CHECK_FALSE(take(0));
    frames[1].first.tag.edge = EdgeId{2};
    CHECK_THROWS_WITH(take(1), ContainsSubstring("does not go on"));
  }
  SECTION("with a hole") {
    CHECK_FALSE(take(0));
    frames[1].first.offset = 20;
    CHECK_THROWS_WITH(take(1), ContainsSubstring("does not go on at byte 10"));
  }
  SECTION("unreadable") {
    CHECK_FALSE(take(0));
    arriving.break_link();
  }
  CHECK(arriving.broken());
  CHECK(arriving.bytes() == 0);
  CHECK_FALSE(take(3));

  // A new link starts from the beginning, and late frames of the old link do not count.
  Outbox second(10);
  second.push(outgoing(5, 1, 7));
  const auto later = frames_of(second, 2);
  const auto whole = arriving.take(later[0].first, later[0].second, true);
  REQUIRE(whole);
  CHECK(at::equal(*whole, outgoing(5, 1, 7).tensor));
  CHECK_FALSE(take(0));
  CHECK_FALSE(arriving.broken());
}

TEST_CASE("a peer cannot have any number of tensors under way (RS-3)", "[futures][reassembly]") {
  Reassembly arriving(100);
  FrameHeader header = header_of({2}, 8);
  header.chunk = 4;
  for (std::size_t i = 0; i < Reassembly::kMostPartial; ++i) {
    header.sequence = header.transfer = i;
    CHECK_FALSE(arriving.take(header, "abcd", true));
  }
  header.sequence = header.transfer = Reassembly::kMostPartial;
  CHECK_THROWS_WITH(arriving.take(header, "abcd", true),
                    ContainsSubstring("more than 64 tensors are under way"));
}

}  // namespace
}  // namespace stagecraft
