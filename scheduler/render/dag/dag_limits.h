/// dag_limits bounds the pictures of DAGs, so that people can read them.
#pragma once

namespace stagecraft {

/// The most nodes of a picture or a page. Four ranks with eight microbatches have about 200. More
/// nodes are refused.
inline constexpr int kMaxDrawnNodes = 1000;

}  // namespace stagecraft
