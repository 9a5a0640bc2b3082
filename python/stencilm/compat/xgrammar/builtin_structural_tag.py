"""The original's module name for members of `tool_tags`, and a function for each family."""

from stencilm.compat.xgrammar.tool_tags import (
    get_builtin_structural_tag,
    get_model_structural_tag,
    normalize_tool_choice,
    of_family,
    register_model_structural_tag,
)

get_cohere_structural_tag = of_family("cohere")
get_deepseek_r1_structural_tag = of_family("deepseek_r1")
get_deepseek_v3_1_structural_tag = of_family("deepseek_v3_1")
get_deepseek_v3_2_structural_tag = of_family("deepseek_v3_2")
get_deepseek_v4_structural_tag = of_family("deepseek_v4")
get_deepseek_v4_1_structural_tag = of_family("deepseek_v4_1")
get_exaone_structural_tag = of_family("exaone")
get_gemma_4_structural_tag = of_family("gemma_4")
get_glm_4_7_structural_tag = of_family("glm_4_7")
get_harmony_structural_tag = of_family("harmony")
get_kimi_structural_tag = of_family("kimi")
get_kimi_k3_structural_tag = of_family("kimi_k3")
get_llama_structural_tag = of_family("llama")
get_mimo_structural_tag = of_family("mimo")
get_minimax_structural_tag = of_family("minimax")
get_minimax_m3_structural_tag = of_family("minimax_m3", usually="auto")
get_qwen_3_structural_tag = of_family("qwen_3")
get_qwen_3_5_structural_tag = of_family("qwen_3_5")
get_qwen_3_coder_structural_tag = of_family("qwen_3_coder")

__all__ = [
    "get_builtin_structural_tag",
    "get_cohere_structural_tag",
    "get_deepseek_r1_structural_tag",
    "get_deepseek_v3_1_structural_tag",
    "get_deepseek_v3_2_structural_tag",
    "get_deepseek_v4_1_structural_tag",
    "get_deepseek_v4_structural_tag",
    "get_exaone_structural_tag",
    "get_gemma_4_structural_tag",
    "get_glm_4_7_structural_tag",
    "get_harmony_structural_tag",
    "get_kimi_k3_structural_tag",
    "get_kimi_structural_tag",
    "get_llama_structural_tag",
    "get_mimo_structural_tag",
    "get_minimax_m3_structural_tag",
    "get_minimax_structural_tag",
    "get_model_structural_tag",
    "get_qwen_3_5_structural_tag",
    "get_qwen_3_coder_structural_tag",
    "get_qwen_3_structural_tag",
    "normalize_tool_choice",
    "register_model_structural_tag",
]
