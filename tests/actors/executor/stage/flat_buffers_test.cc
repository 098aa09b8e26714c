/// Tests the memory of flat buffers that comes and goes.
#include "stagecraft/actors/executor/stage/flat_buffers.h"

#include <ATen/ops/full.h>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

TEST_CASE("what was lent of a flat buffer keeps its memory when the buffer gives it back",
          "[executor]") {
  constexpr std::int64_t kElements = 1 << 20;  // so much that freed memory leaves the process
  const at::Tensor flat = no_memory()(kElements, at::kFloat);
  const at::Tensor view = flat.narrow(0, 10, 20);
  const FlatLease lease(flat, memory_of(at::kCPU));
  CHECK_FALSE(lease.has_memory());
  lease.take();
  view.fill_(3.0);
  const at::Tensor lent = lease.memory().narrow(0, 10, 20);
  lease.take();  // changes nothing
  lease.give_back();
  CHECK_FALSE(lease.has_memory());
  CHECK(lent.equal(at::full({20}, 3.0f)));
  lease.take();
  CHECK(view.equal(at::full({20}, 0.0f)));  // other memory
  CHECK(lent.equal(at::full({20}, 3.0f)));
}

}  // namespace
}  // namespace stagecraft
