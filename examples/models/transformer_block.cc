#include "stagecraft/examples/models/transformer_block.h"

#include <vector>

#include <ATen/ops/dropout.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include "stagecraft/examples/models/build_model.h"
#include "stagecraft/examples/models/layer_size.h"

namespace stagecraft::examples {

double block_weights(double dim, double ffn) {
  return linear_weights(dim, 3 * dim) + linear_weights(dim, dim) + linear_weights(dim, ffn) +
         linear_weights(ffn, dim) + 4 * dim;
}

double kept_by_block(double dim, double ffn) {
  return 3 * dim + 3 * dim + 2 * ffn;
}
TransformerBlockImpl::TransformerBlockImpl(const BlockOptions& o)
    : options_(o),
      norm1_(register_module("norm1", layer_norm(o.dim))),
      norm2_(register_module("norm2", layer_norm(o.dim))),
      qkv_(register_module("qkv", torch::nn::Linear(o.dim, 3 * o.dim))),
      out_(register_module("out", torch::nn::Linear(o.dim, o.dim))),
      up_(register_module("up", torch::nn::Linear(o.dim, o.ffn))),
      down_(register_module("down", torch::nn::Linear(o.ffn, o.dim))) {}

at::Tensor TransformerBlockImpl::forward(const at::Tensor& x) {
  const at::Tensor h = x + dropped(attended(norm1_(x)));
  return h + dropped(down_(dropped(at::gelu(up_(norm2_(h))))));
}

at::Tensor TransformerBlockImpl::attended(const at::Tensor& x) {
  const std::int64_t batch = x.size(0), tokens = x.size(1), dim = x.size(2);
  // Split before transposing: the gradients are then joined in the layout of the view.
  const std::vector<at::Tensor> qkv =
      qkv_(x).view({batch, tokens, 3, options_.heads, -1}).unbind(2);
  const at::Tensor y = at::scaled_dot_product_attention(qkv[0].transpose(1, 2),
                                                        qkv[1].transpose(1, 2),
                                                        qkv[2].transpose(1, 2),
                                                        /*attn_mask=*/{},
                                                        /*dropout_p=*/0.0,
                                                        options_.causal);
  return out_(y.transpose(1, 2).reshape({batch, tokens, dim}));
}

at::Tensor TransformerBlockImpl::dropped(const at::Tensor& x) const {
  return options_.dropout > 0 ? at::dropout(x, options_.dropout, is_training()) : x;
}

}  // namespace stagecraft::examples
