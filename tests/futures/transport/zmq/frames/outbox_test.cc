#include "stagecraft/futures/transport/zmq/frames/outbox.h"

#include <vector>

#include "stagecraft/tests/futures/transport/zmq/frames/outgoing.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

/// Returns the edges of the frames that leave an outbox, in order.
std::vector<int> order_of(Outbox& outbox) {
  std::vector<int> edges;
  while (!outbox.empty()) {
    edges.push_back(outbox.next().first.tag.edge.value);
    outbox.sent();
  }
  return edges;
}

TEST_CASE("small tensors pass large ones, and large ones take turns", "[futures][outbox]") {
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

TEST_CASE("a few of many large tensors are sent at a time", "[futures][outbox]") {
  Outbox outbox(10);
  for (int edge = 1; edge <= 6; ++edge) {
    outbox.push(outgoing(20, edge));
  }
  CHECK(order_of(outbox) == std::vector<int>{1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 5, 6});
}

TEST_CASE("a tensor is sent whole before the next one of its tag begins (OB-1)",
          "[futures][outbox]") {
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

}  // namespace
}  // namespace stagecraft
