#include "stagecraft/futures/transport/zmq/frames/reassembly.h"

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/equal.h>

#include "stagecraft/futures/transport/zmq/frames/outbox.h"
#include "stagecraft/tests/futures/transport/zmq/frames/outgoing.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

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

TEST_CASE("interleaved tensors are reassembled, each when its last chunk arrives (RS-2)",
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

TEST_CASE("an unwanted tensor takes no memory, even if it becomes unwanted half-way",
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

TEST_CASE("after a lost or wrong frame nothing more is taken from its link (RS-1)",
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
    CHECK_THROWS_WITH(take(2), ContainsSubstring("expected frame 1 of link 1, received frame 2"));
  }
  SECTION("the first lost") {
    CHECK_THROWS_WITH(take(1), ContainsSubstring("expected frame 0 of link 1, received frame 1"));
  }
  SECTION("twice") {
    CHECK_FALSE(take(0));
    CHECK(thrown_by([&] { static_cast<void>(take(0)); }) == Errc::TransportRefused);
  }
  SECTION("shorter than it says") {
    frames[0].second.pop_back();
    CHECK_THROWS_WITH(take(0), ContainsSubstring("expected a chunk of 10 bytes, received 9"));
  }
  SECTION("too large") {
    frames[0].first.sizes = {31};
    frames[0].first.total = 31;
    CHECK_THROWS_WITH(take(0), ContainsSubstring("raise largest_tensor"));
  }
  SECTION("without a beginning") {
    frames[0].first.offset = 10;
    CHECK_THROWS_WITH(take(0), ContainsSubstring("begins at byte 10"));
  }
  SECTION("of another tag half-way") {
    CHECK_FALSE(take(0));
    frames[1].first.tag.edge = EdgeId{2};
    CHECK_THROWS_WITH(take(1), ContainsSubstring("does not continue its tensor"));
  }
  SECTION("with a hole") {
    CHECK_FALSE(take(0));
    frames[1].first.offset = 20;
    CHECK_THROWS_WITH(take(1), ContainsSubstring("whose next byte is 10"));
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

TEST_CASE("the number of tensors that a peer sends at once is limited (RS-3)",
          "[futures][reassembly]") {
  Reassembly arriving(100);
  Outbox outbox(4);
  outbox.push(outgoing(8, 1));
  FrameHeader header = outbox.next().first;
  for (std::size_t i = 0; i < Reassembly::kMostPartial; ++i) {
    header.sequence = header.transfer = i;
    CHECK_FALSE(arriving.take(header, "abcd", true));
  }
  header.sequence = header.transfer = Reassembly::kMostPartial;
  CHECK_THROWS_WITH(arriving.take(header, "abcd", true),
                    ContainsSubstring("sends more than 64 tensors at once"));
}

}  // namespace
}  // namespace stagecraft
